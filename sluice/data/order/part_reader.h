// The undecoded samples of one part's batches, in order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sluice/data/order/order.h"
#include "sluice/data/order/range_reader.h"

namespace sluice::data {

struct PartOptions {
  bool shuffle = false;
  std::int64_t buffer_samples = 0, buffer_bytes = 0;  // of all ranges together
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t ranges = 1;
  std::int64_t rows = 1;  // of one replica
  std::int64_t part = 0, parts = 1;
  std::int64_t local_replicas = 1;  // of this part; part p has p·R … (p + 1)·R − 1 of all
  Remainder remainder = Remainder::kDrop;
  std::int64_t skip_batches = 0;
  std::int64_t original_workers = 0;  // above 0: the order of the first training job
  std::int64_t original_samples = 0;

  std::int64_t replicas() const { return parts * local_replicas; }
  std::int64_t global_rows() const { return rows * replicas(); }
};

// One batch of a part: a block of `rows` rows for each local replica. Rows without a sample are padding. The
// last batch of kKeep has only the rows that there are.
struct RawBatch {
  std::int64_t index = 0;
  std::int64_t global_count = 0;  // samples in the batch on all parts together
  std::vector<std::optional<RawSample>> rows;
};

// Samples in one range's shuffle buffer: its share of the samples, and of the bytes by the mean size.
std::int64_t buffer_share(const PartOptions& options, const ShardFacts& facts);

// Threads: one at a time.
class PartReader {
 public:
  virtual ~PartReader() = default;
  virtual base::Result<bool> next(RawBatch& batch) = 0;  // false at the end of the epoch

 protected:
  ReaderMemory batch_memory_;  // of the batch that was given last
};

// Without facts (sizes are not known) there must be one part and one range. `settings` must live as long.
base::Result<std::unique_ptr<PartReader>> make_part_reader(const ReadSettings& settings,
                                                           const PartOptions& options);

}  // namespace sluice::data
