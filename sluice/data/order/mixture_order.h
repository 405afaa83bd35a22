// The source of each sample of a mixture, computed only from sizes and shares.
//
// As in one set (order.h), sample i of an epoch belongs to lane i mod S, and a replica has lanes of its own.
// An epoch is whole global batches, cut into pieces where the shares change. In a piece of n samples, source
// s has n · share(s) of them, rounded so that they add up. The samples of each source are dealt to the lanes
// in turn. Within a lane they are spread evenly over the piece, beginning at a position drawn from seed,
// epoch, source and lane. So any stretch of an epoch is mixed in the proportions of the whole, and a lane
// knows the source of each of its samples by itself.
//
// A source is read pass after pass: its n-th sample in the mixture, counted over all epochs, is the (n mod
// T)-th of pass n div T, where T is its size. Range l of a pass has the number of samples that lane l takes
// of the pass. So each sample comes exactly once a pass, and an epoch continues where the last ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace sluice::data {

// The shares of the sources, which add up to 1, from a global batch on that is counted over all epochs.
struct MixtureShares {
  std::int64_t batch = 0;
  std::vector<double> shares;
};

class MixtureOrder {
 public:
  // `sizes`: samples of each source, above 0. `samples`: samples of an epoch, at least a global batch.
  // `shares`: in ascending order of their batches, the first being 0.
  MixtureOrder(std::vector<std::int64_t> sizes, const std::vector<MixtureShares>& shares,
               std::int64_t samples, std::int64_t global_rows, std::int64_t ranges, std::uint64_t seed);

  std::size_t sources() const { return sizes_.size(); }
  std::int64_t ranges() const { return ranges_; }
  std::int64_t batches() const { return batches_; }  // in each epoch
  // Returns the samples of each source in the epochs before this one.
  std::vector<std::int64_t> taken_before(std::int64_t epoch) const;

  // A pass of a source in one lane: first … first + length − 1 of the samples that the lane takes of it.
  struct Pass {
    std::int64_t number = 0, first = 0, length = 0;
  };
  // Returns the pass in which the lane takes its sample `position` of a source, counted over all epochs.
  Pass pass_at(std::size_t source, std::int64_t lane, std::int64_t position) const;
  // Returns the lengths of a pass in all lanes.
  std::vector<std::int64_t> lengths(std::size_t source, std::int64_t pass) const;

  // The sources of one lane's samples in an epoch.
  class Lane {
   public:
    // Must not be called after the epoch's end. Takes O(log sources) comparisons.
    std::size_t next();
    std::int64_t compared() const { return compared_; }  // comparisons of two sources by next() so far
    // Returns the number of samples of each source that the lane has given, counted over all epochs.
    const std::vector<std::int64_t>& positions() const { return positions_; }

   private:
    friend class MixtureOrder;
    // The lane's part of a piece.
    struct Part {
      std::vector<std::int64_t> counts;
      std::vector<double> phases;  // where the first sample of each source is, in 0…1 of its spacing
      std::int64_t length = 0;     // the sum of the counts
    };
    struct Due {  // when a source's next sample is due
      double time = 0;
      std::size_t source = 0;
    };
    // The order of a heap whose top is the earliest sample, or the one of the first source at the same time.
    auto is_later() {
      return [this](const Due& a, const Due& b) {
        ++compared_;
        return a.time != b.time ? a.time > b.time : a.source > b.source;
      };
    }
    void advance_to(std::int64_t sample);
    double time_of(std::size_t source) const;
    void plan();

    std::vector<Part> parts_;
    std::size_t part_ = 0;
    std::int64_t left_ = 0;            // samples of this part
    std::vector<std::int64_t> given_;  // in this part
    std::vector<Due> due_;             // a heap of the sources that have samples left in this part
    std::vector<std::int64_t> positions_;
    std::int64_t compared_ = 0;
  };
  // Returns the lane's state after the first `skip_batches` batches of the epoch.
  Lane lane(std::int64_t lane, std::int64_t epoch, std::int64_t skip_batches) const;

 private:
  // A piece of `repeat` epochs (kForever: all that follow), at the same position in each.
  struct Piece {
    std::int64_t begin = 0, length = 0;  // in the epoch
    std::vector<std::int64_t> counts;
    // Each source's first number in the piece, in the order of dealing; number mod S is the lane.
    std::vector<std::int64_t> offsets;
    std::int64_t first_epoch = 0, repeat = 1;
  };
  // Where the lanes' phases of one epoch are: for each of its pieces and sources, the place of each lane.
  struct Phases {
    std::int64_t epoch = 0;
    std::vector<std::vector<std::uint32_t>> places;  // of a piece: source × lanes
  };
  std::shared_ptr<const Phases> phases_of(std::int64_t epoch) const;

  void add_epoch(std::int64_t epoch, std::int64_t repeat, const std::vector<MixtureShares>& shares);
  // Returns how many of the first `samples` samples of a source belong to the lane.
  std::int64_t in_lane(std::size_t source, std::int64_t lane, std::int64_t samples) const;

  std::vector<std::int64_t> sizes_;
  std::int64_t global_rows_, ranges_, batches_;
  std::uint64_t seed_;
  std::vector<Piece> pieces_;  // in the order of the run
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Phases> phases_;  // of the epoch that was asked for last; under mutex_
};

}  // namespace sluice::data
