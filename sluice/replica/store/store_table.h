// The contents of a run's store, and its protocol. Needs no socket.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::replica {

// The requests of a process to the store. None waits for another process.
enum class StoreOrder : char {
  kSet = 's',     // key, value
  kGet = 'g',     // key
  kHas = 'h',     // keys: whether all exist
  kAdd = 'a',     // key, number as text: the new sum
  kRemove = 'r',  // key
  kFirst = 'f',   // key, value: keeps an existing value, and answers with it
};

// A request is an order with its words; an answer is a letter and a value.
struct StoreRequest {
  StoreOrder order = StoreOrder::kGet;
  std::vector<std::string> words;
};
std::string text_of(const StoreRequest& request);
std::optional<StoreRequest> request_of(std::string_view bytes);

struct StoreAnswer {
  enum class Kind : char { kYes = 'y', kNo = 'n', kRefused = 'e' };  // refused: the value says why
  Kind kind = Kind::kNo;
  std::string value = {};
};
std::string text_of(const StoreAnswer& answer);
std::optional<StoreAnswer> answer_of(std::string_view bytes);

// Threads: one at a time.
class StoreTable {
 public:
  struct Limits {
    size_t key = 8 << 10;          // bytes
    size_t all = size_t{1} << 30;  // for all keys and values
    size_t keys = 1'000'000;
  };
  StoreTable() : StoreTable(Limits()) {}
  explicit StoreTable(const Limits& limits) : limits_(limits) {}

  StoreAnswer answer(const StoreRequest& request);
  size_t bytes() const { return bytes_; }

 private:
  StoreAnswer put(const std::string& key, std::string value);

  const Limits limits_;
  std::map<std::string, std::string> values_;
  size_t bytes_ = 0;
};

}  // namespace sluice::replica
