#include "sluice/data/order/mixture_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "sluice/base/random.h"
#include "sluice/data/order/order.h"

namespace sluice::data {
namespace {

constexpr std::uint64_t kPhases = 6;  // separates these random numbers from others
constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

// Divides `length` samples by their shares, rounded so that they add up.
std::vector<std::int64_t> counts_of(std::int64_t length, const std::vector<double>& shares) {
  std::vector<std::int64_t> counts;
  double sum = 0;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    sum += shares[i];
    const std::int64_t end =
        i + 1 == shares.size()
            ? length
            : std::clamp<std::int64_t>(std::llround(static_cast<double>(length) * sum), before, length);
    counts.push_back(end - before);
    before = end;
  }
  return counts;
}

}  // namespace

MixtureOrder::MixtureOrder(std::vector<std::int64_t> sizes, const std::vector<MixtureShares>& shares,
                           std::int64_t samples, std::int64_t global_rows, std::int64_t ranges,
                           std::uint64_t seed)
    : sizes_(std::move(sizes)),
      global_rows_(global_rows),
      ranges_(ranges),
      batches_(samples / global_rows),
      seed_(seed) {
  // Adds the epochs in which shares change, and the runs of epochs between them.
  std::int64_t epoch = 0;
  for (const MixtureShares& change : shares) {
    const std::int64_t changes = change.batch / batches_;
    if (change.batch % batches_ == 0 || changes < epoch) {
      if (changes > epoch) add_epoch(epoch, changes - epoch, shares);
      epoch = std::max(epoch, changes);
      continue;
    }
    if (changes > epoch) add_epoch(epoch, changes - epoch, shares);
    add_epoch(changes, 1, shares);
    epoch = changes + 1;
  }
  add_epoch(epoch, kForever, shares);
}

void MixtureOrder::add_epoch(std::int64_t epoch, std::int64_t repeat,
                             const std::vector<MixtureShares>& shares) {
  const std::int64_t begin = epoch * batches_, end = begin + batches_;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const std::int64_t from = std::max(begin, shares[i].batch);
    const std::int64_t to = i + 1 < shares.size() ? std::min(end, shares[i + 1].batch) : end;
    if (from >= to) continue;
    Piece piece;
    piece.begin = (from - begin) * global_rows_;
    piece.length = (to - from) * global_rows_;
    piece.counts = counts_of(piece.length, shares[i].shares);
    std::int64_t offset = piece.begin;
    for (const std::int64_t count : piece.counts) {
      piece.offsets.push_back(offset);
      offset += count;
    }
    piece.first_epoch = epoch;
    piece.repeat = repeat;
    pieces_.push_back(std::move(piece));
  }
}

std::vector<std::int64_t> MixtureOrder::taken_before(std::int64_t epoch) const {
  std::vector<std::int64_t> taken(sources());
  for (const Piece& piece : pieces_)
    for (std::size_t s = 0; s < sources() && piece.first_epoch < epoch; ++s)
      taken[s] += piece.counts[s] * std::min(piece.repeat, epoch - piece.first_epoch);
  return taken;
}

std::int64_t MixtureOrder::in_lane(std::size_t source, std::int64_t lane, std::int64_t samples) const {
  std::int64_t sum = 0;
  for (const Piece& piece : pieces_) {
    const std::int64_t count = piece.counts[source], offset = piece.offsets[source];
    if (count == 0) continue;
    const std::int64_t epochs = std::min(piece.repeat, samples / count);
    sum += epochs * in_turn(offset, offset + count, lane, ranges_);
    samples -= epochs * count;
    if (epochs < piece.repeat) return sum + in_turn(offset, offset + samples, lane, ranges_);
  }
  return sum + in_turn(0, samples, lane, ranges_);  // never taken
}

MixtureOrder::Pass MixtureOrder::pass_at(std::size_t source, std::int64_t lane, std::int64_t position) const {
  const std::int64_t size = sizes_[source];
  std::int64_t low = 0, high = 1;  // the pass is in [low, high)
  while (in_lane(source, lane, high * size) <= position) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (in_lane(source, lane, middle * size) <= position ? low : high) = middle;
  }
  const std::int64_t first = in_lane(source, lane, low * size);
  return {low, first, in_lane(source, lane, (low + 1) * size) - first};
}

std::vector<std::int64_t> MixtureOrder::lengths(std::size_t source, std::int64_t pass) const {
  const std::int64_t begin = pass * sizes_[source];
  std::vector<std::int64_t> lengths;
  for (std::int64_t lane = 0; lane < ranges_; ++lane)
    lengths.push_back(in_lane(source, lane, begin + sizes_[source]) - in_lane(source, lane, begin));
  return lengths;
}

// The lanes' phases are equally spaced numbers, permuted: all lanes together are as even as one lane. All
// lanes need the same permutations, so they are drawn once an epoch.
std::shared_ptr<const MixtureOrder::Phases> MixtureOrder::phases_of(std::int64_t epoch) const {
  const std::lock_guard lock(mutex_);
  if (phases_ && phases_->epoch == epoch) return phases_;
  auto phases = std::make_shared<Phases>();
  phases->epoch = epoch;
  std::vector<std::int64_t> places(static_cast<std::size_t>(ranges_));
  for (const Piece& piece : pieces_) {
    if (piece.first_epoch > epoch || epoch - piece.first_epoch >= piece.repeat) continue;
    auto& of_piece = phases->places.emplace_back();
    of_piece.reserve(sources() * places.size());
    for (std::size_t s = 0; s < sources(); ++s) {
      std::iota(places.begin(), places.end(), std::int64_t{0});
      base::Random({seed_, static_cast<std::uint64_t>(epoch), kPhases,
                    static_cast<std::uint64_t>(piece.begin), static_cast<std::uint64_t>(s)})
          .shuffle(places);
      for (const std::int64_t place : places) of_piece.push_back(static_cast<std::uint32_t>(place));
    }
  }
  phases_ = phases;
  return phases;
}

MixtureOrder::Lane MixtureOrder::lane(std::int64_t lane, std::int64_t epoch,
                                      std::int64_t skip_batches) const {
  Lane result;
  result.positions_.resize(sources());
  const auto phases = phases_of(epoch);
  for (const Piece& piece : pieces_) {
    if (piece.first_epoch > epoch) break;
    const bool here = epoch - piece.first_epoch < piece.repeat;
    Lane::Part part;
    for (std::size_t s = 0; s < sources(); ++s) {
      const std::int64_t offset = piece.offsets[s];
      const std::int64_t own = in_turn(offset, offset + piece.counts[s], lane, ranges_);
      result.positions_[s] += own * std::min(piece.repeat, epoch - piece.first_epoch);
      if (!here) continue;
      part.counts.push_back(own);
      part.length += own;
      const std::uint32_t place = phases->places[result.parts_.size()][s * static_cast<std::size_t>(ranges_) +
                                                                       static_cast<std::size_t>(lane)];
      part.phases.push_back((static_cast<double>(place) + 0.5) / static_cast<double>(ranges_));
    }
    if (here) result.parts_.push_back(std::move(part));
  }
  result.given_.resize(sources());
  result.advance_to(in_turn(0, skip_batches * global_rows_, lane, ranges_));
  return result;
}

// Returns when the next sample of a source is due, in 0…1 of the part.
double MixtureOrder::Lane::time_of(std::size_t source) const {
  const Part& part = parts_[part_];
  return (static_cast<double>(given_[source]) + part.phases[source]) /
         static_cast<double>(part.counts[source]);
}

// Begins to give the samples that are left of the part.
void MixtureOrder::Lane::plan() {
  const Part& part = parts_[part_];
  left_ = part.length - std::accumulate(given_.begin(), given_.end(), std::int64_t{0});
  due_.clear();
  for (std::size_t s = 0; s < given_.size(); ++s)
    if (given_[s] < part.counts[s]) due_.push_back({time_of(s), s});
  std::make_heap(due_.begin(), due_.end(), is_later());
}

std::size_t MixtureOrder::Lane::next() {
  while (left_ == 0) {
    ++part_;
    given_.assign(given_.size(), 0);
    plan();
  }
  std::pop_heap(due_.begin(), due_.end(), is_later());
  const std::size_t source = due_.back().source;
  due_.pop_back();
  ++given_[source];
  ++positions_[source];
  --left_;
  if (given_[source] < parts_[part_].counts[source]) {
    due_.push_back({time_of(source), source});
    std::push_heap(due_.begin(), due_.end(), is_later());
  }
  return source;
}

// Sample by sample would be slow: all samples that are due before a time are computed at once.
void MixtureOrder::Lane::advance_to(std::int64_t sample) {
  for (; part_ < parts_.size(); ++part_) {
    if (sample < parts_[part_].length) break;
    for (std::size_t s = 0; s < given_.size(); ++s) positions_[s] += parts_[part_].counts[s];
    sample -= parts_[part_].length;
  }
  if (part_ == parts_.size()) return;
  const Part& part = parts_[part_];
  const auto sources = static_cast<std::int64_t>(part.counts.size());
  // At most `sample` samples are due before this: each source has at most one above its share of the time.
  const double time = static_cast<double>(sample - sources - 1) / static_cast<double>(part.length);
  for (std::size_t s = 0; s < part.counts.size(); ++s) {
    const double due = std::ceil(time * static_cast<double>(part.counts[s]) - part.phases[s]);
    given_[s] = std::clamp<std::int64_t>(static_cast<std::int64_t>(due), 0, part.counts[s]);
    positions_[s] += given_[s];
    sample -= given_[s];
  }
  plan();
  while (sample-- > 0) next();
}

}  // namespace sluice::data
