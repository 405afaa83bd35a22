// The order of batches that a job with PyTorch's DataLoader and webdataset has, for those who move one to
// Sluice and want to compare (WebDataset::original()). Nothing else depends on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/data/order/part_reader.h"

namespace sluice::data {

// The batches of an epoch. Each replica takes every N-th shard, and each of its W workers every W-th of
// these. Every worker batches its own samples, the last batch being smaller. A replica takes a batch from
// each worker in turn, without the workers that have ended.
struct OriginalPlan {
  struct Step {
    std::int64_t worker = 0, rows = 0;
  };
  std::vector<std::vector<Step>> replicas;  // the batches of each replica, cut to the same number

  // `samples`: the assumed number of samples of the epoch; 0: the sum of the sizes. The epoch ends after
  // samples ÷ (rows × replicas) steps, rounded down, plus one, or when the first replica has no more batches.
  // `whole_batches` leaves out the workers' last, smaller batches.
  static OriginalPlan make(const std::vector<std::int64_t>& sizes, std::int64_t replicas,
                           std::int64_t workers, std::int64_t rows, std::int64_t samples,
                           bool whole_batches = false);
  std::int64_t steps() const { return static_cast<std::int64_t>(replicas.front().size()); }
  std::int64_t samples(std::int64_t replica) const;  // that the replica trains on
  // Returns the shards of a worker.
  static std::vector<std::size_t> shards(std::size_t count, std::int64_t replica, std::int64_t replicas,
                                         std::int64_t worker, std::int64_t workers);
};

// Makes a reader of one part's batches in this order. `settings` must outlive the reader.
std::unique_ptr<PartReader> make_original_reader(const ReadSettings& settings, const PartOptions& options);

}  // namespace sluice::data
