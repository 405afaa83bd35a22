// The undecoded samples of one part's batches, in order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sluice/data/length_shape.h"
#include "sluice/data/order/order.h"
#include "sluice/data/order/range_reader.h"

namespace sluice::data {

struct PartOptions {
  bool shuffle = false;
  std::int64_t buffer_samples = 0, buffer_bytes = 0;  // in all ranges together
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t ranges = 1;
  std::int64_t rows = 1;  // rows of one replica
  std::int64_t part = 0, parts = 1;
  std::int64_t local_replicas = 1;  // of this part: part p has the replicas p·R … (p + 1)·R − 1
  Remainder remainder = Remainder::kDrop;
  std::int64_t skip_batches = 0;
  std::int64_t original_workers = 0;  // above 0: the order of WebDataset::original()
  std::int64_t original_samples = 0;
  std::vector<LengthShape> shapes;  // not empty: batches of samples of similar length, see length_buckets.h

  std::int64_t replicas() const { return parts * local_replicas; }
  std::int64_t global_rows() const { return rows * replicas(); }
};

// One batch of a part: a block of `rows` rows for each local replica. Rows without a sample are padding. The
// last batch of kKeep has only rows with samples.
struct RawBatch {
  std::int64_t index = 0;
  std::int64_t length = 0;        // the length that samples are padded to; 0: no padding
  std::int64_t global_count = 0;  // samples in the batch on all parts together
  std::vector<std::optional<RawSample>> rows;
};

// Returns how many samples a range's shuffle buffer holds: its share of buffer_samples, or of buffer_bytes by
// the mean size of a sample if that is less.
std::int64_t buffer_share(const PartOptions& options, const ShardFacts& facts);

// Threads: one at a time.
class PartReader {
 public:
  virtual ~PartReader() = default;
  virtual base::Result<bool> next(RawBatch& batch) = 0;  // false at the end of the epoch

 protected:
  ReaderMemory batch_memory_;  // for the batch that was given last
};

// Returns the options of a range of an epoch, as its shuffle buffer gives it, from its first sample on.
RangeOptions range_of_epoch(const EpochOrder& order, const PartOptions& options, const ShardFacts& facts,
                            std::int64_t epoch, std::int64_t range);

// Makes the reader for `options`. Without facts (sizes are not known) there must be one part and one range.
// `settings` must outlive the reader.
base::Result<std::unique_ptr<PartReader>> make_part_reader(const ReadSettings& settings,
                                                           const PartOptions& options);

}  // namespace sluice::data
