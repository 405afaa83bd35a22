#include "sluice/replica/store/store_table.h"

#include <cstdint>

#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"

namespace sluice::replica {
namespace {

constexpr std::string_view kOrders = "sghraf";
constexpr size_t kWordLength = 4;  // bytes

StoreAnswer yes(std::string value = "") { return {StoreAnswer::Kind::kYes, std::move(value)}; }
template <typename... Pieces>
StoreAnswer refuse(const Pieces&... pieces) {
  return {StoreAnswer::Kind::kRefused, base::str(pieces...)};
}

}  // namespace

std::string text_of(const StoreRequest& request) {
  std::string text(1, static_cast<char>(request.order));
  for (const std::string& word : request.words) {
    for (size_t i = 0; i < kWordLength; ++i) text += static_cast<char>(word.size() >> (8 * i) & 0xFF);
    text += word;
  }
  return text;
}

std::optional<StoreRequest> request_of(std::string_view bytes) {
  if (bytes.empty() || kOrders.find(bytes[0]) == std::string_view::npos) return std::nullopt;
  StoreRequest request{static_cast<StoreOrder>(bytes[0]), {}};
  bytes.remove_prefix(1);
  while (!bytes.empty()) {
    if (bytes.size() < kWordLength) return std::nullopt;
    size_t length = 0;
    for (size_t i = kWordLength; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
    bytes.remove_prefix(kWordLength);
    if (length > bytes.size()) return std::nullopt;
    request.words.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  const bool pair = request.order == StoreOrder::kSet || request.order == StoreOrder::kAdd ||
                    request.order == StoreOrder::kFirst;
  const bool fits =
      request.order == StoreOrder::kHas ? !request.words.empty() : request.words.size() == (pair ? 2 : 1);
  if (!fits) return std::nullopt;
  return request;
}

std::string text_of(const StoreAnswer& answer) {
  return std::string(1, static_cast<char>(answer.kind)) + answer.value;
}

std::optional<StoreAnswer> answer_of(std::string_view bytes) {
  if (bytes.empty() || std::string_view("yne").find(bytes[0]) == std::string_view::npos) return std::nullopt;
  return StoreAnswer{static_cast<StoreAnswer::Kind>(bytes[0]), std::string(bytes.substr(1))};
}

StoreAnswer StoreTable::answer(const StoreRequest& request) {
  const std::string& key = request.words[0];
  const auto found = values_.find(key);
  const bool there = found != values_.end();
  switch (request.order) {
    case StoreOrder::kSet:
      return put(key, request.words[1]);
    case StoreOrder::kGet:
      return there ? yes(found->second) : StoreAnswer{};
    case StoreOrder::kHas:
      for (const std::string& each : request.words)
        if (!values_.contains(each)) return {};
      return yes();
    case StoreOrder::kAdd: {
      const auto before = base::number_of<int64_t>(there ? found->second : "0");
      const auto more = base::number_of<int64_t>(request.words[1]);
      int64_t sum = 0;
      if (!before || !more || __builtin_add_overflow(*before, *more, &sum))
        return refuse("no sum of \"", there ? found->second.substr(0, 32) : "0", "\" and \"",
                      request.words[1].substr(0, 32), "\"");
      const StoreAnswer kept = put(key, std::to_string(sum));
      return kept.kind == StoreAnswer::Kind::kYes ? yes(std::to_string(sum)) : kept;
    }
    case StoreOrder::kRemove:
      if (!there) return {};
      bytes_ -= key.size() + found->second.size();
      values_.erase(found);
      return yes();
    case StoreOrder::kFirst: {
      if (there) return yes(found->second);
      const StoreAnswer kept = put(key, request.words[1]);
      return kept.kind == StoreAnswer::Kind::kYes ? yes(request.words[1]) : kept;
    }
  }
  return {};
}

StoreAnswer StoreTable::put(const std::string& key, std::string value) {
  if (key.size() > limits_.key) return refuse("a key of ", key.size(), " bytes: at most ", limits_.key);
  const auto found = values_.find(key);
  const bool there = found != values_.end();
  const size_t before = there ? key.size() + found->second.size() : 0;
  if (bytes_ - before + key.size() + value.size() > limits_.all || (!there && values_.size() >= limits_.keys))
    return refuse("the store of the run is full: ", values_.size(), " values of ", bytes_, " bytes");
  bytes_ += key.size() + value.size() - before;
  values_[key] = std::move(value);
  return yes();
}

}  // namespace sluice::replica
