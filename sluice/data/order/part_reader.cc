#include "sluice/data/order/part_reader.h"

#include <algorithm>

#include "sluice/base/text/quantity.h"
#include "sluice/data/order/length_buckets.h"
#include "sluice/data/order/original_order.h"

namespace sluice::data {
namespace {

constexpr std::uint64_t kDraws = 4;  // separates these random numbers from others

tl::unexpected<Error> too_few(const PartOptions& options, std::int64_t total) {
  return base::fail(
      Code::kInvalidArgument, "the ", total, " samples of an epoch do not fill one batch of ", options.rows,
      " × ", options.replicas(), " = ", options.global_rows(),
      ": use a smaller --batch-size, or fill the batch up with --remainder pad (in C++ pad(), or keep())");
}

tl::unexpected<Error> no_samples(const ReadSettings& settings) {
  return base::fail(Code::kInvalidArgument, "no samples in ",
                    base::counted(static_cast<std::int64_t>(settings.urls->size()), "shard"),
                    ", the first being '", settings.urls->front(),
                    "': expected members such as 0001.jpg and 0001.cls");
}

// The ranges of one epoch that belong to this part, opened when they are first needed.
class EpochRanges {
 public:
  // `done`: samples of the epoch, on all parts together, that are not wanted again.
  EpochRanges(const ReadSettings& settings, const PartOptions& options, std::int64_t epoch,
              std::int64_t offset, std::int64_t done)
      : settings_(settings),
        options_(options),
        epoch_(epoch),
        offset_(offset),
        done_(done),
        order_(settings.facts->sizes, options.shuffle, options.seed, epoch, options.ranges, offset),
        ranges_(static_cast<std::size_t>(options.ranges)) {}

  base::Result<bool> next(std::int64_t sample, RawSample& out) {
    const auto range = static_cast<std::size_t>((offset_ + sample) % options_.ranges);
    if (!ranges_[range]) open(static_cast<std::int64_t>(range));
    return ranges_[range]->next(out);
  }

 private:
  // Reads the indexes of the shards that this part begins with at the same time, not one after the other.
  void load_indexes() {
    ShardPlaces* const places = settings_.facts->places.get();
    if (loaded_ || places == nullptr || !places->is_waiting()) return;
    loaded_ = true;
    std::vector<std::size_t> shards;
    for (std::int64_t range = 0; range < options_.ranges; ++range) {
      if (options_.parts > 1 && range % options_.replicas() / options_.local_replicas != options_.part)
        continue;
      std::int64_t skip = order_.taken(range, done_);
      for (const Segment& segment : order_.segments(range)) {
        skip -= segment.count;
        if (skip < 0) {
          shards.push_back(segment.shard);
          break;
        }
      }
    }
    places->load_all(shards);
  }

  void open(std::int64_t range) {
    load_indexes();
    RangeOptions options = range_of_epoch(order_, options_, *settings_.facts, epoch_, range);
    options.skip = order_.taken(range, done_);
    ranges_[static_cast<std::size_t>(range)] = std::make_unique<RangeReader>(settings_, std::move(options));
  }

  const ReadSettings& settings_;
  const PartOptions& options_;
  std::int64_t epoch_, offset_, done_;
  EpochOrder order_;
  std::vector<std::unique_ptr<RangeReader>> ranges_;
  bool loaded_ = false;  // the indexes of the first shards
};

class InterleavedReader : public PartReader {
 public:
  InterleavedReader(const ReadSettings& settings, const PartOptions& options)
      : settings_(settings), options_(options), at_(options.skip_batches) {
    plan_ = {settings.facts->total, options_.rows, options_.replicas(), options_.remainder, options_.epoch};
    const std::int64_t begin = plan_.begin(at_), offset = plan_.offset();
    current_.emplace(settings_, options_, options_.epoch, offset, std::max<std::int64_t>(0, begin - offset));
    if (begin < offset)
      before_.emplace(settings_, options_, options_.epoch - 1, offset - plan_.total,
                      begin - (offset - plan_.total));
  }

  base::Result<bool> next(RawBatch& batch) override {
    if (at_ >= plan_.batches()) return false;
    batch_memory_.clear();
    batch.index = at_;
    batch.global_count = plan_.count(at_);
    const std::int64_t begin = plan_.begin(at_), local = options_.local_replicas;
    const bool full = options_.remainder != Remainder::kKeep || batch.global_count == plan_.global_rows();
    batch.rows.clear();
    if (full) batch.rows.resize(static_cast<std::size_t>(options_.rows * local));
    for (std::int64_t row = 0; row < options_.rows; ++row) {
      for (std::int64_t r = 0; r < local; ++r) {
        const std::int64_t in_batch = row * plan_.replicas + options_.part * local + r;
        if (in_batch >= batch.global_count) continue;
        RawSample sample;
        SLUICE_OK(read(begin + in_batch, sample));
        hold_sample(sample, batch_memory_);
        if (full)
          batch.rows[static_cast<std::size_t>(r * options_.rows + row)] = std::move(sample);
        else
          batch.rows.emplace_back(std::move(sample));
      }
    }
    if (begin + plan_.global_rows() > plan_.offset()) before_.reset();
    ++at_;
    return true;
  }

 private:
  base::Status read(std::int64_t number, RawSample& sample) {
    const std::int64_t in_epoch = number - plan_.offset();
    auto& ranges = in_epoch < 0 ? *before_ : *current_;
    SLUICE_TRY(const bool found, ranges.next(in_epoch < 0 ? in_epoch + plan_.total : in_epoch, sample));
    if (!found) return base::fail(Code::kUnknown, "a range of the epoch ended before its time");
    return {};
  }

  const ReadSettings& settings_;
  PartOptions options_;
  BatchPlan plan_;
  std::optional<EpochRanges> current_, before_;  // before_: the epoch whose remainder this one begins with
  std::int64_t at_;
};

// A reader of all shards as one range, if their sizes are not known.
class SingleReader : public PartReader {
 public:
  SingleReader(const ReadSettings& settings, const PartOptions& options)
      : settings_(settings), options_(options) {
    RangeOptions range;
    range.random = base::Random({options.seed, static_cast<std::uint64_t>(options.epoch), kDraws});
    for (std::size_t shard = 0; shard < settings.urls->size(); ++shard)
      range.segments.push_back({shard, 0, kToTheEnd});
    if (options.shuffle) {
      range.random.shuffle(range.segments);
      range.capacity = std::max<std::int64_t>(1, options.buffer_samples);
      range.max_bytes = options.buffer_bytes;
    }
    range_.emplace(settings, std::move(range));
  }

  base::Result<bool> next(RawBatch& batch) override {
    while (true) {
      SLUICE_TRY(const std::int64_t count, gather(batch));
      const bool whole = count == options_.global_rows();
      if (at_ == 0 && count == 0) return no_samples(settings_);
      if (at_ == 0 && !whole && options_.remainder == Remainder::kDrop) return too_few(options_, count);
      if (count == 0 || (!whole && options_.remainder == Remainder::kDrop)) return false;
      batch.index = at_++;
      batch.global_count = count;
      if (batch.index >= options_.skip_batches) return true;
    }
  }

 private:
  base::Result<std::int64_t> gather(RawBatch& batch) {
    batch_memory_.clear();
    batch.rows.clear();
    batch.rows.resize(static_cast<std::size_t>(options_.global_rows()));
    std::int64_t count = 0;
    for (; count < options_.global_rows(); ++count) {
      auto& row = batch.rows[row_of(count)];
      SLUICE_TRY(const bool found, range_->next(row.emplace()));
      if (found) hold_sample(*row, batch_memory_);
      if (found) continue;
      row.reset();
      break;
    }
    if (options_.remainder != Remainder::kKeep || count == options_.global_rows()) return count;
    std::vector<std::optional<RawSample>> kept;
    for (std::int64_t i = 0; i < count; ++i) kept.push_back(std::move(batch.rows[row_of(i)]));
    batch.rows = std::move(kept);
    return count;
  }

  // Returns the row of the batch's sample `number`: samples go to the replicas in turns.
  std::size_t row_of(std::int64_t number) const {
    return static_cast<std::size_t>(number % options_.local_replicas * options_.rows +
                                    number / options_.local_replicas);
  }

  const ReadSettings& settings_;
  PartOptions options_;
  std::optional<RangeReader> range_;
  std::int64_t at_ = 0;
};

}  // namespace

std::int64_t buffer_share(const PartOptions& options, const ShardFacts& facts) {
  if (!options.shuffle) return 1;
  std::int64_t share = (options.buffer_samples + options.ranges - 1) / options.ranges;
  if (facts.bytes > 0 && facts.total > 0) {
    const auto mean = std::max<std::int64_t>(1, static_cast<std::int64_t>(facts.bytes) / facts.total);
    share = std::min(share, options.buffer_bytes / options.ranges / mean);
  }
  return std::max<std::int64_t>(1, share);
}

RangeOptions range_of_epoch(const EpochOrder& order, const PartOptions& options, const ShardFacts& facts,
                            std::int64_t epoch, std::int64_t range) {
  RangeOptions result;
  result.segments = order.segments(range);
  result.capacity = buffer_share(options, facts);
  result.random = base::Random(
      {options.seed, static_cast<std::uint64_t>(epoch), kDraws, static_cast<std::uint64_t>(range)});
  return result;
}

base::Result<std::unique_ptr<PartReader>> make_part_reader(const ReadSettings& settings,
                                                           const PartOptions& options) {
  if (!settings.facts) return std::make_unique<SingleReader>(settings, options);
  const std::int64_t total = settings.facts->total;
  if (total == 0) return no_samples(settings);
  if (!options.shapes.empty()) return make_bucket_reader(settings, options);
  if (options.original_workers > 0) return make_original_reader(settings, options);
  const bool fill = options.remainder == Remainder::kDrop || options.remainder == Remainder::kCarry;
  if (fill && total < options.global_rows()) return too_few(options, total);
  return std::make_unique<InterleavedReader>(settings, options);
}

}  // namespace sluice::data
