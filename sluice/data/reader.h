// The samples of an epoch, undecoded, in the order that (seed, epoch) gives.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/random.h"
#include "sluice/data/group.h"

namespace sluice::data {

struct ReaderOptions {
  std::vector<std::string> urls;
  bool shuffle = false;
  std::int64_t buffer_samples = 0;
  std::int64_t buffer_bytes = 0;
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  Wanted wanted;
  const std::atomic<bool>* cancelled = nullptr;
};

// With shuffle: shards are permuted, and each sample is drawn from a buffer that is filled first and refilled
// after each draw. Threads: one at a time, but bytes() and shards() from any thread.
class EpochReader {
 public:
  explicit EpochReader(ReaderOptions options);

  base::Result<bool> next(RawSample& sample);  // false at the end of the epoch

  std::int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::int64_t shards() const { return shards_.load(std::memory_order_relaxed); }  // read to their end

 private:
  base::Result<bool> next_in_shards(RawSample& sample);
  bool buffer_is_full() const;

  ReaderOptions options_;
  base::Random random_;
  std::size_t next_url_ = 0;
  std::unique_ptr<ShardReader> shard_;
  std::uint64_t shard_offset_ = 0;
  std::vector<RawSample> buffer_;
  std::int64_t buffered_bytes_ = 0;
  bool exhausted_ = false;
  std::atomic<std::int64_t> bytes_{0}, shards_{0};
};

// Samples in a shard, counted by its headers.
base::Result<std::int64_t> count_samples(const std::string& url);

}  // namespace sluice::data
