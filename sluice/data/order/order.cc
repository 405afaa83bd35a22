#include "sluice/data/order/order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sluice/base/random.h"

namespace sluice::data {
namespace {

// Separate these random numbers from each other and from the augmentation's.
constexpr std::uint64_t kShards = 1, kRanges = 3;

// Returns how many g in [0, end) have g mod ranges == range.
std::int64_t counted(std::int64_t end, std::int64_t range, std::int64_t ranges) {
  return (end - range + ranges - 1) / ranges;
}

std::vector<std::int64_t> equal_lengths(const std::vector<std::int64_t>& sizes, std::int64_t ranges,
                                        std::int64_t offset) {
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  std::vector<std::int64_t> lengths;
  for (std::int64_t range = 0; range < ranges; ++range)
    lengths.push_back(in_turn(offset, offset + total, range, ranges));
  return lengths;
}

}  // namespace

std::int64_t in_turn(std::int64_t begin, std::int64_t end, std::int64_t range, std::int64_t ranges) {
  return std::max<std::int64_t>(0, counted(end, range, ranges)) -
         std::max<std::int64_t>(0, counted(begin, range, ranges));
}

EpochOrder::EpochOrder(const std::vector<std::int64_t>& sizes, bool shuffle, std::uint64_t seed,
                       std::int64_t epoch, std::int64_t ranges, std::int64_t offset)
    : EpochOrder(sizes, shuffle, seed, epoch, equal_lengths(sizes, ranges, offset % ranges)) {
  offset_ = offset % ranges;
}

EpochOrder::EpochOrder(const std::vector<std::int64_t>& sizes, bool shuffle, std::uint64_t seed,
                       std::int64_t epoch, std::vector<std::int64_t> lengths)
    : ranges_(static_cast<std::int64_t>(lengths.size())),
      shards_(sizes.size()),
      ends_(sizes.size()),
      starts_(lengths.size()),
      lengths_(std::move(lengths)) {
  const auto number = static_cast<std::uint64_t>(epoch);
  std::iota(shards_.begin(), shards_.end(), std::size_t{0});
  if (shuffle) base::Random({seed, number, kShards}).shuffle(shards_);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < shards_.size(); ++i) ends_[i] = total += sizes[shards_[i]];

  std::vector<std::int64_t> order(lengths_.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (shuffle) base::Random({seed, number, kRanges}).shuffle(order);
  std::int64_t at = 0;
  for (const std::int64_t range : order) {
    const auto place = static_cast<std::size_t>(range);
    starts_[place] = at;
    at += lengths_[place];
  }
}

std::vector<Segment> EpochOrder::segments(std::int64_t range) const {
  std::int64_t at = starts_[static_cast<std::size_t>(range)];
  const std::int64_t end = at + length(range);
  std::vector<Segment> segments;
  auto shard = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), at) - ends_.begin());
  for (; at < end; ++shard) {
    const std::int64_t begin = shard == 0 ? 0 : ends_[shard - 1];
    const std::int64_t count = std::min(end, ends_[shard]) - at;
    if (count > 0) segments.push_back({shards_[shard], at - begin, count});
    at += count;
  }
  return segments;
}

std::int64_t EpochOrder::taken(std::int64_t range, std::int64_t samples) const {
  return in_turn(offset_, offset_ + samples, range, ranges_);
}

std::int64_t BatchPlan::batches() const {
  const std::int64_t global = global_rows();
  if (remainder == Remainder::kCarry) return (offset() + total) / global - offset() / global;
  return remainder == Remainder::kDrop ? total / global : (total + global - 1) / global;
}

std::int64_t BatchPlan::begin(std::int64_t batch) const {
  return (offset() / global_rows() + batch) * global_rows();
}

std::int64_t BatchPlan::count(std::int64_t batch) const {
  return std::min(global_rows(), offset() + total - begin(batch));
}

}  // namespace sluice::data
