// Batches of samples of similar length, in a few fixed shapes. The samples come in the order of the epoch,
// and each waits in the bucket of the shortest shape that holds it. When every replica has a full batch
// waiting in a bucket, these are the next global batch. So all replicas have the same shape at every step,
// and each host reads only the samples of its own replicas. Which samples make a batch depends on the epoch's
// order, the lengths and the number of replicas, not on the number of hosts.
//
// Samples that wait at the end of an epoch go into longer shapes, as far as that fills batches. All replicas
// have seen the same number of samples (± 1) and given out the same number, so less than one batch of the
// longest shape is left.
//
// Lengths are known before anything is read: a host that resumes simulates the batches before its position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/length_shape.h"
#include "sluice/data/order/part_reader.h"

namespace sluice::data {

// The number of samples that wait in each bucket. Threads: one at a time.
class LengthBuckets {
 public:
  // The number of samples of a batch, by the bucket in which they waited and by replica.
  using Counts = std::vector<std::vector<std::int64_t>>;

  LengthBuckets(std::vector<LengthShape> shapes, std::int64_t replicas);

  // Returns the shapes, the shortest first.
  const std::vector<LengthShape>& shapes() const { return shapes_; }
  // Returns the index in shapes() for a sample; the last one for a sample that is too long.
  std::size_t bucket_of(std::int64_t length) const;
  // Adds the next sample of a replica; true if it completes the bucket's global batch, which is given out.
  bool add(std::int64_t replica, std::size_t bucket);
  // At the end of an epoch: finds the shortest shape for which every replica can fill a batch with samples
  // from its bucket and from the shorter shapes' buckets, the longest first. Nothing when no shape can.
  std::optional<std::size_t> fill(Counts& given);
  // At the end of an epoch: finds a bucket with samples left. Each replica gives out its samples in it, at
  // most a batch. Nothing when no samples are left.
  std::optional<std::size_t> flush(Counts& given);

 private:
  bool can_fill(std::size_t bucket) const;

  std::vector<LengthShape> shapes_;
  Counts waiting_;                  // samples
  std::vector<std::int64_t> full_;  // replicas that have a batch, by bucket
};

// Does what parse_shapes() does; fails with kInvalidArgument where that throws.
base::Result<std::vector<LengthShape>> read_shapes(std::string_view text);
// Returns "16x512,32x256,64x128".
std::string shapes_text(const std::vector<LengthShape>& shapes);

// Makes a reader of one part's batches of options.shapes; samples that wait count as memory of readers
// (memory.h). `settings` must outlive the reader.
std::unique_ptr<PartReader> make_bucket_reader(const ReadSettings& settings, const PartOptions& options);
// Returns the number of batches of an epoch, by simulating it: some 20 ns a sample.
std::int64_t bucket_batches(const std::shared_ptr<const ShardFacts>& facts, const PartOptions& options);

}  // namespace sluice::data
