#include "sluice/data/order/mixture_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace sluice::data {
namespace {

constexpr std::uint64_t kPassDraws = 7;  // separates these random numbers from others

// The passes of one source. Each pass has a range for each lane.
class SourcePasses {
 public:
  SourcePasses(std::size_t number, MixedSource source, const MixtureOrder& order)
      : number_(number), source_(source), order_(order), lanes_(static_cast<std::size_t>(order.ranges())) {}

  // Reads sample `position` of the lane's samples of this source; each call reads the next one.
  base::Status next(std::int64_t lane, std::int64_t position, RawSample& sample) {
    auto& current = lanes_[static_cast<std::size_t>(lane)];
    if (!current || position >= current->end) open(lane, position, current);
    SLUICE_TRY(const bool found, current->range->next(sample));
    if (!found) return base::fail(Code::kUnknown, "a range of a mixture ended before its time");
    sample.source = static_cast<int>(number_);
    sample.epoch = current->pass;
    return {};
  }

  // Whether the source has indexes that were not read yet.
  bool is_waiting() const {
    const ShardPlaces* const places = source_.settings->facts->places.get();
    return places != nullptr && places->is_waiting();
  }
  // Returns the shard of the lane's sample `position` of this source.
  std::size_t shard_of(std::int64_t lane, std::int64_t position) {
    const MixtureOrder::Pass pass = order_.pass_at(number_, lane, position);
    std::int64_t left = position - pass.first;
    const std::vector<Segment> segments = pass_order(pass.number).segments(lane);
    for (const Segment& segment : segments) {
      if (left < segment.count) return segment.shard;
      left -= segment.count;
    }
    return segments.back().shard;
  }
  void load_indexes(const std::vector<std::size_t>& shards) const {
    source_.settings->facts->places->load_all(shards);
  }

 private:
  struct Current {
    std::int64_t pass = 0, end = 0;
    std::unique_ptr<RangeReader> range;
  };

  void open(std::int64_t lane, std::int64_t position, std::optional<Current>& current) {
    const MixtureOrder::Pass pass = order_.pass_at(number_, lane, position);
    RangeOptions options;
    options.segments = pass_order(pass.number).segments(lane);
    options.capacity = source_.capacity;
    options.random = base::Random({source_.seed, static_cast<std::uint64_t>(pass.number), kPassDraws,
                                   static_cast<std::uint64_t>(lane)});
    options.skip = position - pass.first;
    current.reset();
    current.emplace(Current{pass.number, pass.first + pass.length,
                            std::make_unique<RangeReader>(*source_.settings, std::move(options))});
  }

  // Returns the order of a pass, which all lanes need at about the same time.
  const EpochOrder& pass_order(std::int64_t pass) {
    auto known = passes_.find(pass);
    if (known == passes_.end()) {
      if (passes_.size() == 4) passes_.erase(passes_.begin());
      known = passes_
                  .emplace(pass, EpochOrder(source_.settings->facts->sizes, source_.shuffle, source_.seed,
                                            pass, order_.lengths(number_, pass)))
                  .first;
    }
    return known->second;
  }

  std::size_t number_;
  MixedSource source_;
  const MixtureOrder& order_;
  std::vector<std::optional<Current>> lanes_;
  std::map<std::int64_t, EpochOrder> passes_;
};

class MixtureReader : public PartReader {
 public:
  MixtureReader(std::vector<MixedSource> sources, std::shared_ptr<const MixtureOrder> order,
                const PartOptions& part)
      : order_(std::move(order)),
        part_(part),
        at_(part.skip_batches),
        lanes_(static_cast<std::size_t>(order_->ranges())) {
    for (std::size_t i = 0; i < sources.size(); ++i) sources_.emplace_back(i, sources[i], *order_);
  }

  base::Result<bool> next(RawBatch& batch) override {
    if (at_ >= order_->batches()) return false;
    if (at_ == part_.skip_batches) load_indexes();
    batch_memory_.clear();
    batch.index = at_;
    batch.global_count = part_.global_rows();
    batch.rows.clear();
    const std::int64_t local = part_.local_replicas;
    batch.rows.resize(static_cast<std::size_t>(part_.rows * local));
    for (std::int64_t row = 0; row < part_.rows; ++row) {
      for (std::int64_t r = 0; r < local; ++r) {
        const std::int64_t in_batch = row * part_.replicas() + part_.part * local + r;
        RawSample sample;
        SLUICE_OK(read(at_ * part_.global_rows() + in_batch, sample));
        hold_sample(sample, batch_memory_);
        batch.rows[static_cast<std::size_t>(r * part_.rows + row)] = std::move(sample);
      }
    }
    ++at_;
    return true;
  }

 private:
  MixtureOrder::Lane& lane_at(std::int64_t place) {
    auto& lane = lanes_[static_cast<std::size_t>(place)];
    if (!lane) lane = order_->lane(place, part_.epoch, part_.skip_batches);
    return *lane;
  }

  // Reads the indexes of the shards that this part begins with at the same time, not one after the other.
  void load_indexes() {
    if (std::none_of(sources_.begin(), sources_.end(), [](const auto& one) { return one.is_waiting(); }))
      return;
    std::vector<std::vector<std::size_t>> shards(sources_.size());
    const std::int64_t first = at_ * part_.global_rows(), end = order_->batches() * part_.global_rows();
    for (std::int64_t place = 0; place < order_->ranges(); ++place) {
      if (place % part_.replicas() / part_.local_replicas != part_.part) continue;
      MixtureOrder::Lane lane = lane_at(place);  // a copy, which goes ahead
      const std::int64_t samples = in_turn(first, end, place, order_->ranges());
      std::vector<bool> seen(sources_.size());
      for (std::int64_t i = 0; i < std::min(samples, 2 * static_cast<std::int64_t>(sources_.size())); ++i) {
        const std::size_t source = lane.next();
        if (seen[source]) continue;
        seen[source] = true;
        if (sources_[source].is_waiting())
          shards[source].push_back(sources_[source].shard_of(place, lane.positions()[source] - 1));
      }
    }
    for (std::size_t source = 0; source < sources_.size(); ++source)
      if (!shards[source].empty()) sources_[source].load_indexes(shards[source]);
  }

  base::Status read(std::int64_t number, RawSample& sample) {
    const std::int64_t place = number % order_->ranges();
    MixtureOrder::Lane* const lane = &lane_at(place);
    const std::size_t source = lane->next();
    return sources_[source].next(place, lane->positions()[source] - 1, sample);
  }

  std::shared_ptr<const MixtureOrder> order_;
  PartOptions part_;
  std::int64_t at_;
  std::vector<SourcePasses> sources_;
  std::vector<std::optional<MixtureOrder::Lane>> lanes_;
};

}  // namespace

std::unique_ptr<PartReader> make_mixture_reader(std::vector<MixedSource> sources,
                                                std::shared_ptr<const MixtureOrder> order,
                                                const PartOptions& part) {
  return std::make_unique<MixtureReader>(std::move(sources), std::move(order), part);
}

}  // namespace sluice::data
