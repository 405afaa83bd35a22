// The settings of a WebDataset.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/data/dataset.h"
#include "sluice/data/decode/decode.h"
#include "sluice/data/order/survey.h"
#include "sluice/data/shards/shard_facts.h"

namespace sluice::data {

// Throws for wrong settings, from the call that gives them.
[[noreturn]] inline void misuse(const std::string& message) { throw_error(Code::kInvalidArgument, message); }
inline void demand(bool condition, const char* what, std::int64_t found, const char* expected) {
  if (!condition) misuse(base::str("WebDataset: ", what, " of ", found, ": expected ", expected));
}

// Returns how many bad samples a part may leave out of an epoch. `limit`: a count, or below 1 a share.
inline std::int64_t bad_limit(double limit, std::int64_t samples, std::int64_t parts) {
  if (limit >= 1) return static_cast<std::int64_t>(limit);
  return static_cast<std::int64_t>(limit * static_cast<double>(samples) / static_cast<double>(parts));
}

struct WebDataset::Settings {
  // Answers that copies of a dataset share.
  struct Known {
    std::mutex mutex;
    std::shared_ptr<const std::vector<std::string>> urls;
    std::atomic<int> workers{0};  // the number that an earlier stream needed; 0: not known
    std::shared_ptr<const ShardFacts> facts;
    std::optional<std::unordered_map<std::string, std::int64_t>> numbers;  // of the samples, by their keys
  };

  std::vector<std::string> patterns;
  Survey survey;
  std::shared_ptr<Known> known = std::make_shared<Known>();
  bool shuffle = false;
  std::int64_t buffer_samples = 0, buffer_bytes = 0;
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  DecodePlan decode;
  std::vector<std::function<void(Sample&)>> maps;
  std::vector<float> mean, deviation;
  std::int64_t batch = 1;
  std::optional<Remainder> remainder;
  std::vector<LengthShape> shapes;  // for bucket_by_length(), the shortest first
  std::int64_t ranges = 64, shard_size = 0;
  bool ranges_are_chosen = false;  // by the user: they must fit the replicas unchanged
  std::int64_t original_workers = 0, original_samples = 0;
  OnError on_error = OnError::kStop;
  double max_bad = 0.001;
  bool allow_unknown_loss = false;
  std::string cache_folder;
  std::int64_t cache_bytes = 0;
  int workers = 0, prefetch = 4;
  std::int64_t prefetch_bytes = std::int64_t{256} << 20;

  // The shards with all patterns expanded, and the facts about them: both are found out once.
  std::shared_ptr<const std::vector<std::string>> shards() const;
  base::Result<std::shared_ptr<const ShardFacts>> learn() const;
  Remainder chosen_remainder() const {
    return remainder.value_or(shuffle && original_workers == 0 ? Remainder::kDrop : Remainder::kKeep);
  }
};

}  // namespace sluice::data
