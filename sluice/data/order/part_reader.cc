#include "sluice/data/order/part_reader.h"

#include <algorithm>

namespace sluice::data {
namespace {

constexpr std::uint64_t kDraws = 4, kOriginal = 5;  // set these numbers apart from others

tl::unexpected<Error> too_few(const PartOptions& options, std::int64_t total) {
  return base::fail(Code::kInvalidArgument, "the ", total, " samples of an epoch do not fill one batch of ",
                    options.rows, " × ", options.replicas(), " = ", options.global_rows(),
                    ": use a smaller batch, or pad() or keep() instead of drop_last()");
}

tl::unexpected<Error> no_samples(const ReadSettings& settings) {
  return base::fail(Code::kInvalidArgument, "no samples in ", settings.urls.size(),
                    " shard(s), the first being '", settings.urls.front(),
                    "': expected members such as 0001.jpg and 0001.cls");
}

// The streams of one epoch that belong to this part, opened when they are first needed.
class EpochStreams {
 public:
  // `done`: samples of the epoch, on all parts together, that are not wanted again.
  EpochStreams(const ReadSettings& settings, const PartOptions& options, std::int64_t epoch,
               std::int64_t offset, std::int64_t done)
      : settings_(settings),
        options_(options),
        epoch_(epoch),
        offset_(offset),
        done_(done),
        order_(settings.facts->sizes, options.shuffle, options.seed, epoch, options.streams, offset),
        capacity_(buffer_share(options, *settings.facts)),
        streams_(static_cast<std::size_t>(options.streams)) {}

  base::Result<bool> next(std::int64_t sample, RawSample& out) {
    const auto stream = static_cast<std::size_t>((offset_ + sample) % options_.streams);
    if (!streams_[stream]) open(static_cast<std::int64_t>(stream));
    return streams_[stream]->next(out);
  }

 private:
  void open(std::int64_t stream) {
    RunOptions run;
    run.run = order_.run(stream);
    run.capacity = capacity_;
    run.random = base::Random(
        {options_.seed, static_cast<std::uint64_t>(epoch_), kDraws, static_cast<std::uint64_t>(stream)});
    run.skip = order_.taken(stream, done_);
    streams_[static_cast<std::size_t>(stream)] = std::make_unique<RunReader>(settings_, std::move(run));
  }

  const ReadSettings& settings_;
  const PartOptions& options_;
  std::int64_t epoch_, offset_, done_;
  EpochOrder order_;
  std::int64_t capacity_;
  std::vector<std::unique_ptr<RunReader>> streams_;
};

class StreamsReader : public PartReader {
 public:
  StreamsReader(const ReadSettings& settings, const PartOptions& options)
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
    auto& streams = in_epoch < 0 ? *before_ : *current_;
    SLUICE_TRY(const bool found, streams.next(in_epoch < 0 ? in_epoch + plan_.total : in_epoch, sample));
    if (!found) return base::fail(Code::kUnknown, "a stream of the epoch ended before its time");
    return {};
  }

  const ReadSettings& settings_;
  PartOptions options_;
  BatchPlan plan_;
  std::optional<EpochStreams> current_, before_;  // before_: the epoch whose remainder this one begins with
  std::int64_t at_;
};

// One stream over shards whose sizes are not known.
class SingleReader : public PartReader {
 public:
  SingleReader(const ReadSettings& settings, const PartOptions& options)
      : settings_(settings), options_(options) {
    RunOptions run;
    run.random = base::Random({options.seed, static_cast<std::uint64_t>(options.epoch), kDraws});
    for (std::size_t shard = 0; shard < settings.urls.size(); ++shard)
      run.run.push_back({shard, 0, kToTheEnd});
    if (options.shuffle) {
      run.random.shuffle(run.run);
      run.capacity = std::max<std::int64_t>(1, options.buffer_samples);
      run.max_bytes = options.buffer_bytes;
    }
    stream_.emplace(settings, std::move(run));
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
    std::vector<RawSample> samples;
    RawSample sample;
    while (static_cast<std::int64_t>(samples.size()) < options_.global_rows()) {
      SLUICE_TRY(const bool found, stream_->next(sample));
      if (!found) break;
      samples.push_back(std::move(sample));
    }
    const auto count = static_cast<std::int64_t>(samples.size());
    const bool compact = options_.remainder == Remainder::kKeep && count < options_.global_rows();
    batch.rows.clear();
    batch.rows.resize(static_cast<std::size_t>(compact ? count : options_.global_rows()));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t replica = i % options_.local_replicas, row = i / options_.local_replicas;
      batch.rows[static_cast<std::size_t>(compact ? i : replica * options_.rows + row)] =
          std::move(samples[static_cast<std::size_t>(i)]);
    }
    return count;
  }

  const ReadSettings& settings_;
  PartOptions options_;
  std::optional<RunReader> stream_;
  std::int64_t at_ = 0;
};

// The first training job's order, for the replicas of this part.
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

  std::unique_ptr<RunReader> make_worker(std::int64_t replica, std::int64_t worker) const {
    RunOptions run;
    run.random = base::Random({options_.seed, static_cast<std::uint64_t>(options_.epoch), kOriginal,
                               static_cast<std::uint64_t>(replica), static_cast<std::uint64_t>(worker)});
    auto shards = OriginalPlan::shards(settings_.urls.size(), replica, options_.replicas(), worker,
                                       options_.original_workers);
    if (options_.shuffle) run.random.shuffle(shards);
    for (const std::size_t shard : shards) run.run.push_back({shard, 0, settings_.facts->sizes[shard]});
    run.capacity = options_.shuffle ? std::max<std::int64_t>(1, options_.buffer_samples) : 1;
    run.initial = options_.shuffle ? 100 : 0;
    for (std::int64_t batch = 0; batch < at_; ++batch)
      if (step(replica, batch).worker == worker) run.skip += step(replica, batch).rows;
    return std::make_unique<RunReader>(settings_, std::move(run));
  }

  const ReadSettings& settings_;
  PartOptions options_;
  OriginalPlan plan_;
  std::int64_t at_;
  std::vector<std::unique_ptr<RunReader>> workers_;
};

}  // namespace

std::int64_t buffer_share(const PartOptions& options, const ShardFacts& facts) {
  if (!options.shuffle) return 1;
  std::int64_t share = (options.buffer_samples + options.streams - 1) / options.streams;
  if (facts.bytes > 0 && facts.total > 0) {
    const auto mean = std::max<std::int64_t>(1, static_cast<std::int64_t>(facts.bytes) / facts.total);
    share = std::min(share, options.buffer_bytes / options.streams / mean);
  }
  return std::max<std::int64_t>(1, share);
}

base::Result<std::unique_ptr<PartReader>> make_part_reader(const ReadSettings& settings,
                                                           const PartOptions& options) {
  if (!settings.facts) return std::make_unique<SingleReader>(settings, options);
  const std::int64_t total = settings.facts->total;
  if (total == 0) return no_samples(settings);
  if (options.original_workers > 0) {
    auto reader = std::make_unique<OriginalReader>(settings, options);
    return reader;
  }
  const bool fill = options.remainder == Remainder::kDrop || options.remainder == Remainder::kCarry;
  if (fill && total < options.global_rows()) return too_few(options, total);
  return std::make_unique<StreamsReader>(settings, options);
}

}  // namespace sluice::data
