#include "sluice/data/order/original_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sluice/base/random.h"

namespace sluice::data {
namespace {

constexpr std::uint64_t kOriginal = 5;  // separates these random numbers from others

// A reader in that order, for the replicas of this part.
class OriginalReader : public PartReader {
 public:
  OriginalReader(const ReadSettings& settings, const PartOptions& options)
      : settings_(settings),
        options_(options),
        plan_(OriginalPlan::make(settings.facts->sizes, options.replicas(), options.original_workers,
                                 options.rows, options.original_samples,
                                 options.remainder == Remainder::kDrop)),
        at_(std::min(options.skip_batches, plan_.steps())) {
    for (std::int64_t r = 0; r < options_.local_replicas; ++r)
      for (std::int64_t worker = 0; worker < options_.original_workers; ++worker)
        workers_.push_back(make_worker(replica(r), worker));
  }

  base::Result<bool> next(RawBatch& batch) override {
    if (at_ >= plan_.steps()) return false;
    batch_memory_.clear();
    batch.index = at_;
    batch.global_count = 0;
    for (std::int64_t n = 0; n < options_.replicas(); ++n) batch.global_count += step(n, at_).rows;
    batch.rows.clear();
    for (std::int64_t r = 0; r < options_.local_replicas; ++r) {
      const auto& [worker, rows] = step(replica(r), at_);
      for (std::int64_t row = 0; row < rows; ++row) {
        RawSample sample;
        SLUICE_TRY(const bool found,
                   workers_[static_cast<std::size_t>(r * options_.original_workers + worker)]->next(sample));
        if (!found) return base::fail(Code::kUnknown, "a worker's shards ended before their time");
        hold_sample(sample, batch_memory_);
        batch.rows.emplace_back(std::move(sample));
      }
      if (options_.remainder != Remainder::kKeep)
        batch.rows.resize(static_cast<std::size_t>((r + 1) * options_.rows));
    }
    ++at_;
    return true;
  }

 private:
  std::int64_t replica(std::int64_t local) const { return options_.part * options_.local_replicas + local; }
  const OriginalPlan::Step& step(std::int64_t replica, std::int64_t batch) const {
    return plan_.replicas[static_cast<std::size_t>(replica)][static_cast<std::size_t>(batch)];
  }

  std::unique_ptr<RangeReader> make_worker(std::int64_t replica, std::int64_t worker) const {
    RangeOptions range;
    range.random = base::Random({options_.seed, static_cast<std::uint64_t>(options_.epoch), kOriginal,
                                 static_cast<std::uint64_t>(replica), static_cast<std::uint64_t>(worker)});
    auto shards = OriginalPlan::shards(settings_.urls->size(), replica, options_.replicas(), worker,
                                       options_.original_workers);
    if (options_.shuffle) range.random.shuffle(shards);
    for (const std::size_t shard : shards)
      range.segments.push_back({shard, 0, settings_.facts->sizes[shard]});
    range.capacity = options_.shuffle ? std::max<std::int64_t>(1, options_.buffer_samples) : 1;
    range.initial = options_.shuffle ? 100 : 0;
    for (std::int64_t batch = 0; batch < at_; ++batch)
      if (step(replica, batch).worker == worker) range.skip += step(replica, batch).rows;
    return std::make_unique<RangeReader>(settings_, std::move(range));
  }

  const ReadSettings& settings_;
  PartOptions options_;
  OriginalPlan plan_;
  std::int64_t at_;
  std::vector<std::unique_ptr<RangeReader>> workers_;
};

}  // namespace

std::vector<std::size_t> OriginalPlan::shards(std::size_t count, std::int64_t replica, std::int64_t replicas,
                                              std::int64_t worker, std::int64_t workers) {
  std::vector<std::size_t> result;
  const auto first = static_cast<std::size_t>(replica + worker * replicas);
  for (std::size_t i = first; i < count; i += static_cast<std::size_t>(replicas * workers))
    result.push_back(i);
  return result;
}

OriginalPlan OriginalPlan::make(const std::vector<std::int64_t>& sizes, std::int64_t replicas,
                                std::int64_t workers, std::int64_t rows, std::int64_t samples,
                                bool whole_batches) {
  if (samples == 0) samples = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  OriginalPlan plan;
  auto steps = static_cast<std::size_t>(samples / (rows * replicas) + 1);
  for (std::int64_t replica = 0; replica < replicas; ++replica) {
    std::vector<std::int64_t> left;
    for (std::int64_t worker = 0; worker < workers; ++worker) {
      left.push_back(0);
      for (const std::size_t shard : shards(sizes.size(), replica, replicas, worker, workers))
        left.back() += sizes[shard];
      if (whole_batches) left.back() -= left.back() % rows;
    }
    auto& batches = plan.replicas.emplace_back();
    while (std::any_of(left.begin(), left.end(), [](std::int64_t some) { return some > 0; })) {
      for (std::int64_t worker = 0; worker < workers; ++worker) {
        std::int64_t& some = left[static_cast<std::size_t>(worker)];
        if (some == 0) continue;
        batches.push_back({worker, std::min(rows, some)});
        some -= batches.back().rows;
      }
    }
    steps = std::min(steps, batches.size());
  }
  for (auto& batches : plan.replicas) batches.resize(steps);
  return plan;
}

std::int64_t OriginalPlan::samples(std::int64_t replica) const {
  std::int64_t sum = 0;
  for (const Step& step : replicas[static_cast<std::size_t>(replica)]) sum += step.rows;
  return sum;
}

std::unique_ptr<PartReader> make_original_reader(const ReadSettings& settings, const PartOptions& options) {
  return std::make_unique<OriginalReader>(settings, options);
}

}  // namespace sluice::data
