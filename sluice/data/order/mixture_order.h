// Which source of a mixture each sample comes from, computed from sizes and shares alone.
//
// As in one set (order.h), sample i of an epoch belongs to lane i mod S, and a replica has lanes of its own.
// An epoch is whole global batches, cut into pieces where the shares change. In a piece of n samples source s
// has n · share(s) of them, rounded so that they add up; the samples of each source are dealt to the lanes in
// turn, and within a lane spread evenly over the piece, each source's beginning at a place drawn from seed,
// epoch, source and lane. So any part of an epoch is mixed as the whole is, and a lane knows by itself what
// comes when.
//
// A source is gone through pass after pass: its n-th sample in the mixture, counted over all epochs, is the
// (n mod T)-th of pass n div T, where T is its size. Range l of a pass is as long as the number of samples
// that lane l takes of it: each sample comes exactly once a pass, and the next epoch goes on where the last
// one ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::data {

// The shares of the sources, which add up to 1, from a global batch on that is counted over all epochs.
struct MixtureShares {
  std::int64_t batch = 0;
  std::vector<double> shares;
};

class MixtureOrder {
 public:
  // `sizes`: samples of each source, above 0. `samples`: of an epoch, at least a global batch. `shares`: by
  // their batches, the first being 0.
  MixtureOrder(std::vector<std::int64_t> sizes, const std::vector<MixtureShares>& shares,
               std::int64_t samples, std::int64_t global_rows, std::int64_t ranges, std::uint64_t seed);

  std::size_t sources() const { return sizes_.size(); }
  std::int64_t ranges() const { return ranges_; }
  std::int64_t batches() const { return batches_; }  // of each epoch
  // Samples of each source in the epochs before this one.
  std::vector<std::int64_t> taken_before(std::int64_t epoch) const;

  // A pass of a source in one lane: samples first … first + length − 1 of those that the lane takes of it.
  struct Pass {
    std::int64_t number = 0, first = 0, length = 0;
  };
  // The pass in which the lane takes its sample `position` of a source, counted over all epochs.
  Pass pass_at(std::size_t source, std::int64_t lane, std::int64_t position) const;
  // The lengths of a pass in all lanes.
  std::vector<std::int64_t> lengths(std::size_t source, std::int64_t pass) const;

  // The sources of one lane's samples in an epoch.
  class Lane {
   public:
    std::size_t next();  // not to be called behind the epoch's end
    // How many samples of each source the lane has given, counted over all epochs.
    const std::vector<std::int64_t>& positions() const { return positions_; }

   private:
    friend class MixtureOrder;
    // What the lane has of a piece.
    struct Part {
      std::vector<std::int64_t> counts;
      std::vector<double> phases;  // where the first sample of each source lies, in 0…1 of its spacing
    };
    void advance_to(std::int64_t sample);
    double time_of(std::size_t source) const;

    std::vector<Part> parts_;
    std::size_t part_ = 0;
    std::vector<std::int64_t> given_;  // in this part
    std::vector<std::int64_t> positions_;
  };
  // After the first `skip_batches` batches of the epoch.
  Lane lane(std::int64_t lane, std::int64_t epoch, std::int64_t skip_batches) const;

 private:
  // `repeat` epochs (kForever: all that come) have this piece, at the same place.
  struct Piece {
    std::int64_t begin = 0, length = 0;  // in the epoch
    std::vector<std::int64_t> counts;
    std::int64_t first_epoch = 0, repeat = 1;

    // Where the samples of a source begin in the piece, as they are dealt.
    std::int64_t offset(std::size_t source) const;
  };

  void add_epoch(std::int64_t epoch, std::int64_t repeat, const std::vector<MixtureShares>& shares);
  // How many of the first `samples` samples of a source belong to the lane.
  std::int64_t in_lane(std::size_t source, std::int64_t lane, std::int64_t samples) const;

  std::vector<std::int64_t> sizes_;
  std::int64_t global_rows_, ranges_, batches_;
  std::uint64_t seed_;
  std::vector<Piece> pieces_;  // in the order of the run
};

}  // namespace sluice::data
