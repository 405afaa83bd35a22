// What the verbs of `sluice data` share.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/result.h"

namespace CLI {
class App;
}

namespace sluice::cli {

inline constexpr char kShardsHelp[] =
    "Shards: paths, {0000..0639} and {a,b} braces, globs, @file (a list), several joined by '::'";

std::string grouped(std::int64_t number);    // "12,345"
std::string size_text(std::uint64_t bytes);  // "1.2 MB"
void print_json(const nlohmann::json& document);

// One line on stderr that counts: rewritten in place on a terminal, now and then a new one otherwise.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }

  void show(const std::string& what, std::int64_t done, std::int64_t total);
  void clear();

 private:
  const bool terminal_;
  base::Stopwatch clock_;
  double last_ = 0;
  bool shown_ = false;
};

// A verb's body as CLI11's callback: errors become a message and the exit status.
std::function<void()> guarded(std::string verb, int& exit_status, std::function<base::Status()> body);

// The shards that the arguments stand for.
base::Result<std::vector<std::string>> expand_arguments(const std::vector<std::string>& arguments);

// One file each: data_pack_verbs.cc, data_list_verbs.cc, …
void add_pack_verbs(CLI::App& noun, int& exit_status);
void add_list_verbs(CLI::App& noun, int& exit_status);
void add_cat_verb(CLI::App& noun, int& exit_status);
void add_index_verb(CLI::App& noun, int& exit_status);
void add_stats_verb(CLI::App& noun, int& exit_status);

}  // namespace sluice::cli
