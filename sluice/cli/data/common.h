// The arguments, the progress and the error handling that the verbs of `sluice data` share.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/result.h"
#include "sluice/base/text/quantity.h"
#include "sluice/cli/flags/flag.h"
#include "sluice/cli/verb.h"
#include "sluice/data/order/filter.h"

namespace sluice::cli {

using base::counted, base::grouped, base::size_text;

void print_json(const nlohmann::json& document);

// A counter on one line of standard error: rewritten in place on a terminal, else a new line now and then.
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

// Wraps a verb's body: the exit status is 0, or 1 with the error on standard error.
std::function<int()> guarded(std::string verb, std::function<base::Status()> body, std::string noun = "data");

// The rows of the shards that a verb reads, as its arguments, and of --allow-pipe.
std::vector<Flag> shard_rows(std::vector<std::string>& shards);
Flag allow_pipe_row();
// The rows of --workers, for verbs that read shards, and of --json.
Flag read_workers_row(int& workers);
Flag lines_or_json_row(bool& json);
// The rows of --max-sample, --max-buffered and --max-pixels, for verbs that read or decode samples.
std::vector<Flag> memory_rows();

// The row of --where, and the filters for its values.
Flag where_row(std::vector<std::string>& conditions);
base::Result<std::vector<data::Filter>> filters_of(const std::vector<std::string>& conditions);

// Returns the shards that the arguments name.
base::Result<std::vector<std::string>> expand_arguments(const std::vector<std::string>& arguments);

// Defined in pack_verbs.cc.
Verb pack_verb();
Verb append_verb();
Verb digits_verb();
Verb cifar10_verb();
Verb idx_verb();
Verb mds_verb();
// Defined in list_verbs.cc.
Verb ls_verb();
Verb verify_verb();
// Defined in one file each.
Verb cat_verb();
Verb index_verb();
Verb stats_verb();
Verb update_verb();
Verb cp_verb();

}  // namespace sluice::cli
