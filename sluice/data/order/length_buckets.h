// Batches of samples of similar length, in a few fixed shapes. The samples come in the order of the epoch,
// and each waits in the bucket of the shortest shape that holds it. When, in a bucket, every replica has a
// full batch waiting, these are the next global batch. So all replicas have the same shape at every step,
// each host reads the samples of its own replicas alone, and which samples make a batch depends on the
// epoch's order, the lengths and the number of replicas, not on the number of hosts.
//
// What waits at the end of an epoch goes into longer shapes, as far as that fills batches. All replicas have
// seen as many samples (or one more) and given as many, so fewer than one batch of the longest shape are
// left.
//
// Lengths are known before anything is read, so a host that resumes plays the batches before its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/data/length_shape.h"
#include "sluice/data/order/part_reader.h"

namespace sluice::data {

// How many samples wait where. Threads: one at a time.
class LengthBuckets {
 public:
  // Samples of a batch, by the bucket in which they waited and by replica.
  using Counts = std::vector<std::vector<std::int64_t>>;

  LengthBuckets(std::vector<LengthShape> shapes, std::int64_t replicas);

  // By length, the shortest first.
  const std::vector<LengthShape>& shapes() const { return shapes_; }
  // The place in shapes() for a sample; the last one for what is too long.
  std::size_t bucket_of(std::int64_t length) const;
  // Takes in the next sample of a replica; true when the bucket's global batch is complete, which is given
  // out.
  bool add(std::int64_t replica, std::size_t bucket);
  // At the end of an epoch: the shortest shape of which every replica can fill a batch with samples that wait
  // in its bucket and in those of shorter shapes, the longest of them first. Nothing when there is none.
  std::optional<std::size_t> fill(Counts& given);
  // At the end of an epoch: a bucket with samples left, of which each replica gives out as many as it has, up
  // to a batch. Nothing when no samples are left.
  std::optional<std::size_t> flush(Counts& given);

 private:
  bool can_fill(std::size_t bucket) const;

  std::vector<LengthShape> shapes_;
  Counts waiting_;                  // samples
  std::vector<std::int64_t> full_;  // replicas that have a batch, by bucket
};

// "16x512,32x256,64x128"
std::string shapes_text(const std::vector<LengthShape>& shapes);

// One part's batches, of options.shapes; samples that wait count for what readers may hold. `settings` must
// live as long.
std::unique_ptr<PartReader> make_bucket_reader(const ReadSettings& settings, const PartOptions& options);
// The batches of an epoch. Plays it: some 20 ns a sample.
std::int64_t bucket_batches(const std::shared_ptr<const ShardFacts>& facts, const PartOptions& options);

}  // namespace sluice::data
