// The order of samples in an epoch, computed only from the shards' sizes: nothing is read for it.
//
// An epoch interleaves S ranges. The shards, permuted by (seed, epoch), are laid end to end and cut into S
// contiguous ranges of equal length (± 1 sample), which are numbered in an order drawn from the same numbers.
// So no range ends before the others: a range is filled up with samples of the neighbouring shard, and a
// shard is split only where a cut falls into it. With fewer shards than ranges this splits all of them.
// Sample i of the epoch is the next one of range i mod S; each range is shuffled in a buffer of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/data/stream.h"

namespace sluice::data {

// Samples first … first + count − 1 of a shard.
struct Segment {
  std::size_t shard = 0;
  std::int64_t first = 0, count = 0;
  bool operator==(const Segment&) const = default;
};
constexpr std::int64_t kToTheEnd = -1;  // a count that is not known before the shard is read

// Returns how many numbers in [begin, end) are `range` modulo `ranges`.
std::int64_t in_turn(std::int64_t begin, std::int64_t end, std::int64_t range, std::int64_t ranges);

class EpochOrder {
 public:
  // `sizes`: samples of each shard. `offset`: the epoch's first sample comes from range offset mod S.
  EpochOrder(const std::vector<std::int64_t>& sizes, bool shuffle, std::uint64_t seed, std::int64_t epoch,
             std::int64_t ranges, std::int64_t offset = 0);
  // Makes ranges of these lengths, which are together as long as the shards. taken() is not defined.
  EpochOrder(const std::vector<std::int64_t>& sizes, bool shuffle, std::uint64_t seed, std::int64_t epoch,
             std::vector<std::int64_t> lengths);

  std::int64_t length(std::int64_t range) const { return lengths_[static_cast<std::size_t>(range)]; }
  // Returns the parts of shards that make a range, in this order.
  std::vector<Segment> segments(std::int64_t range) const;
  // Returns how many of the epoch's first `samples` samples come from this range.
  std::int64_t taken(std::int64_t range, std::int64_t samples) const;

 private:
  std::int64_t ranges_, offset_ = 0;
  std::vector<std::size_t> shards_;             // permuted
  std::vector<std::int64_t> ends_;              // where the shards end on the line, in that order
  std::vector<std::int64_t> starts_, lengths_;  // where each range is on the line
};

// The samples of the batches of an epoch. G = rows × replicas.
// - kDrop, kPad, kKeep: batch k has samples k·G … of the epoch, and range i mod S gives sample i.
// - kCarry: samples are counted on through all epochs; an epoch's first batch begins with the remainder of
//   its predecessor, and sample i of epoch e, whose number is g = e·T + i, comes from range g mod S.
// Row j of a global batch belongs to replica j mod replicas, and is row j div replicas there.
struct BatchPlan {
  std::int64_t total = 0;  // samples of an epoch (T)
  std::int64_t rows = 1, replicas = 1;
  Remainder remainder = Remainder::kDrop;
  std::int64_t epoch = 0;

  std::int64_t global_rows() const { return rows * replicas; }
  std::int64_t offset() const { return remainder == Remainder::kCarry ? epoch * total : 0; }
  std::int64_t batches() const;
  // Returns the number of the first sample of batch k; below offset() for samples of the epoch before.
  std::int64_t begin(std::int64_t batch) const;
  // Returns the number of samples in batch k, without padding.
  std::int64_t count(std::int64_t batch) const;
};

}  // namespace sluice::data
