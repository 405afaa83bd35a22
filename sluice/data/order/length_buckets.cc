#include "sluice/data/order/length_buckets.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <utility>

#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/decode/decode.h"

namespace sluice::data {
namespace {

// The lengths of an epoch's samples, in the epoch's order. Nothing is read.
class EpochLengths {
 public:
  EpochLengths(std::shared_ptr<const ShardFacts> facts, const PartOptions& options) {
    settings_.facts = std::move(facts);
    const EpochOrder order(settings_.facts->sizes, options.shuffle, options.seed, options.epoch,
                           options.ranges);
    for (std::int64_t range = 0; range < options.ranges; ++range)
      ranges_.push_back(std::make_unique<RangeReader>(
          settings_, range_of_epoch(order, options, *settings_.facts, options.epoch, range)));
  }

  std::int64_t next() {
    const auto [shard, place] = *ranges_[at_++ % ranges_.size()]->next_place();
    return settings_.facts->lengths[shard][static_cast<std::size_t>(place)];
  }

 private:
  ReadSettings settings_;
  std::vector<std::unique_ptr<RangeReader>> ranges_;
  std::size_t at_ = 0;
};

// The batches of an epoch as numbers: the shape of each, and the number of samples of each replica.
class EpochBuckets {
 public:
  struct Added {
    std::int64_t sample = 0, replica = 0;
    std::size_t bucket = 0;
  };

  EpochBuckets(std::shared_ptr<const ShardFacts> facts, const PartOptions& options)
      : replicas_(options.replicas()),
        drop_(options.remainder == Remainder::kDrop),
        total_(facts->total),
        lengths_(std::move(facts), options),
        buckets_(options.shapes, replicas_),
        counts_(options.shapes.size(), std::vector<std::int64_t>(static_cast<std::size_t>(replicas_))) {}

  // Returns the bucket of the next batch; nothing at the end. `hear` is called for each sample that goes into
  // a bucket on the way.
  template <typename Hear>
  base::Result<std::optional<std::size_t>> next(const Hear& hear) {
    for (auto& counts : counts_) std::fill(counts.begin(), counts.end(), 0);
    while (samples_ < total_) {
      const Added added{samples_, samples_ % replicas_, buckets_.bucket_of(lengths_.next())};
      ++samples_;
      SLUICE_OK(hear(added));
      if (!buckets_.add(added.replica, added.bucket)) continue;
      counts_[added.bucket].assign(static_cast<std::size_t>(replicas_), shapes()[added.bucket].rows);
      return std::optional(added.bucket);
    }
    return drop_ ? buckets_.fill(counts_) : buckets_.flush(counts_);
  }
  // The number of samples of the batch that was given last: of a replica that waited in a bucket, and of all.
  std::int64_t count(std::size_t bucket, std::int64_t replica) const {
    return counts_[bucket][static_cast<std::size_t>(replica)];
  }
  std::int64_t count() const {
    std::int64_t all = 0;
    for (const auto& counts : counts_) all = std::accumulate(counts.begin(), counts.end(), all);
    return all;
  }
  const std::vector<LengthShape>& shapes() const { return buckets_.shapes(); }
  std::int64_t samples() const { return samples_; }  // the number that went into buckets

 private:
  std::int64_t replicas_;
  bool drop_;
  std::int64_t total_, samples_ = 0;
  EpochLengths lengths_;
  LengthBuckets buckets_;
  LengthBuckets::Counts counts_;
};

class BucketReader : public PartReader {
 public:
  BucketReader(const ReadSettings& settings, const PartOptions& options)
      : settings_(settings),
        options_(options),
        order_(settings.facts->sizes, options_.shuffle, options_.seed, options_.epoch, options_.ranges),
        buckets_(settings.facts, options_),
        ranges_(static_cast<std::size_t>(options_.ranges)),
        waiting_(buckets_.shapes().size() * static_cast<std::size_t>(options_.local_replicas)) {}

  base::Result<bool> next(RawBatch& batch) override {
    if (!std::exchange(begun_, true)) say_left_out();
    if (at_ < options_.skip_batches) SLUICE_OK(pass_over());
    SLUICE_TRY(const auto bucket, buckets_.next([&](const Added& added) -> base::Status {
      if (!is_local(added.replica)) return {};
      SLUICE_TRY(RawSample sample, read(added.sample));
      put(added, std::move(sample));
      return {};
    }));
    if (!bucket && at_ == 0) return no_batch();
    if (!bucket) return false;
    give(*bucket, batch);
    return true;
  }

 private:
  using Added = EpochBuckets::Added;

  bool is_local(std::int64_t replica) const { return replica / options_.local_replicas == options_.part; }
  std::deque<RawSample>& queue(std::size_t bucket, std::int64_t replica) {
    return waiting_[bucket * static_cast<std::size_t>(options_.local_replicas) +
                    static_cast<std::size_t>(replica % options_.local_replicas)];
  }
  void put(const Added& added, RawSample sample) {
    hold_sample(sample, waiting_memory_);
    queue(added.bucket, added.replica).push_back(std::move(sample));
  }

  // Reads sample `number` of the epoch. In each range, numbers only grow, without gaps once it is open.
  base::Result<RawSample> read(std::int64_t number) {
    const std::int64_t place = number % options_.ranges;
    auto& range = ranges_[static_cast<std::size_t>(place)];
    if (!range) {
      RangeOptions drawn = range_of_epoch(order_, options_, *settings_.facts, options_.epoch, place);
      drawn.skip = number / options_.ranges;
      range = std::make_unique<RangeReader>(settings_, std::move(drawn));
    }
    RawSample sample;
    SLUICE_TRY(const bool found, range->next(sample));
    if (!found) return base::fail(Code::kUnknown, "a range of the epoch ended before its time");
    return sample;
  }

  // Simulates the batches that were given before. Then reads each range from the first of its samples that
  // was still waiting, and keeps the waiting ones.
  base::Status pass_over() {
    std::map<std::int64_t, Added> left;  // samples by their numbers
    std::map<std::pair<std::size_t, std::int64_t>, std::deque<std::int64_t>> queues;
    for (; at_ < options_.skip_batches; ++at_) {
      SLUICE_TRY(const auto bucket, buckets_.next([&](const Added& added) -> base::Status {
        if (!is_local(added.replica)) return {};
        left[added.sample] = added;
        queues[{added.bucket, added.replica}].push_back(added.sample);
        return {};
      }));
      if (!bucket) return {};
      for (auto& [place, samples] : queues)
        for (std::int64_t i = buckets_.count(place.first, place.second); i > 0; --i) {
          left.erase(samples.front());
          samples.pop_front();
        }
    }
    std::map<std::int64_t, std::int64_t> firsts;  // the first sample of each range
    for (const auto& [number, added] : left) firsts.try_emplace(number % options_.ranges, number);
    std::map<std::int64_t, RawSample> samples;
    for (const auto& [range, first] : firsts)
      for (std::int64_t number = first; number < buckets_.samples(); number += options_.ranges) {
        SLUICE_TRY(RawSample sample, read(number));
        if (left.contains(number)) samples[number] = std::move(sample);
      }
    for (auto& [number, sample] : samples) put(left[number], std::move(sample));
    return {};
  }

  void give(std::size_t bucket, RawBatch& batch) {
    const LengthShape shape = buckets_.shapes()[bucket];
    batch_memory_.clear();
    batch.index = at_++;
    batch.length = shape.length;
    batch.global_count = buckets_.count();
    batch.rows.clear();
    batch.rows.resize(static_cast<std::size_t>(shape.rows * options_.local_replicas));
    for (std::int64_t r = 0; r < options_.local_replicas; ++r) {
      const std::int64_t replica = options_.part * options_.local_replicas + r;
      auto row = batch.rows.begin() + r * shape.rows;
      for (std::size_t from = bucket + 1; from-- > 0;)
        for (std::int64_t i = buckets_.count(from, replica); i > 0; --i, ++row) {
          RawSample sample = std::move(queue(from, replica).front());
          queue(from, replica).pop_front();
          waiting_memory_.shrink(sample.bytes());
          hold_sample(sample, batch_memory_);
          *row = std::move(sample);
        }
    }
  }

  // Reports the samples that will wait in buckets at the end of the epoch and are dropped. They are less than
  // a global batch, so only a small set can lose more than 1 %, and only then the batches are counted.
  void say_left_out() const {
    const std::int64_t total = settings_.facts->total;
    std::int64_t rows = 0;
    for (const LengthShape& shape : options_.shapes) rows = std::max(rows, shape.rows);
    if (options_.part != 0 || options_.remainder != Remainder::kDrop ||
        rows * options_.replicas() * 100 <= total)
      return;
    EpochBuckets plan(settings_.facts, options_);
    std::int64_t given = 0;
    for (auto bucket = plan.next(nothing); bucket && *bucket; bucket = plan.next(nothing))
      given += plan.count();
    const std::int64_t left = total - given;
    if (given == 0 || left * 100 <= total) return;
    base::warn("bucket_by_length: ", base::grouped(left), " of the ", base::grouped(total),
               " samples of epoch ", options_.epoch, " (", left * 1000 / total / 10, ".",
               left * 1000 / total % 10, " %) fill no batch on ",
               base::counted(options_.replicas(), "replica"),
               " and are left out: fewer rows in the longest shape leave out fewer, and pad() none");
  }
  static base::Status nothing(const Added&) { return {}; }

  tl::unexpected<Error> no_batch() const {
    return base::fail(Code::kInvalidArgument, "the ", settings_.facts->total,
                      " samples of an epoch do not fill one batch of any shape on ", options_.replicas(),
                      " replicas: choose fewer rows, or fill the batches up with pad()");
  }

  const ReadSettings& settings_;
  PartOptions options_;
  EpochOrder order_;
  EpochBuckets buckets_;
  std::vector<std::unique_ptr<RangeReader>> ranges_;
  ReaderMemory waiting_memory_;                 // for waiting_
  std::vector<std::deque<RawSample>> waiting_;  // by bucket and local replica
  std::int64_t at_ = 0;
  bool begun_ = false;
};

}  // namespace

base::Result<std::vector<LengthShape>> read_shapes(std::string_view text) {
  std::vector<LengthShape> shapes;
  for (const std::string& part : base::split(text, ',')) {
    const std::string_view shape = base::trim(part);
    const std::size_t by = std::min(shape.find('x'), shape.size());
    const auto rows = parse_whole_number(shape.substr(0, by));
    const auto length = parse_whole_number(shape.substr(std::min(by + 1, shape.size())));
    if (!rows || !length || *rows < 1 || *length < 1)
      return base::fail(Code::kInvalidArgument, "the shapes '", text,
                        "': expected ROWSxLENGTH, with commas between them, such as 16x512,32x256");
    shapes.push_back({*rows, *length});
  }
  return shapes;
}

std::vector<LengthShape> parse_shapes(std::string_view text) {
  return base::value_or_throw(read_shapes(text));
}

std::string shapes_text(const std::vector<LengthShape>& shapes) {
  std::vector<std::string> texts;
  for (const LengthShape& shape : shapes) texts.push_back(base::str(shape.rows, "x", shape.length));
  return base::join(texts, ",");
}

LengthBuckets::LengthBuckets(std::vector<LengthShape> shapes, std::int64_t replicas)
    : shapes_(std::move(shapes)),
      waiting_(shapes_.size(), std::vector<std::int64_t>(static_cast<std::size_t>(replicas))),
      full_(shapes_.size()) {
  std::sort(shapes_.begin(), shapes_.end(), [](const auto& a, const auto& b) { return a.length < b.length; });
}

std::size_t LengthBuckets::bucket_of(std::int64_t length) const {
  const auto found = std::find_if(shapes_.begin(), shapes_.end() - 1,
                                  [&](const LengthShape& shape) { return length <= shape.length; });
  return static_cast<std::size_t>(found - shapes_.begin());
}

bool LengthBuckets::add(std::int64_t replica, std::size_t bucket) {
  auto& waiting = waiting_[bucket];
  const std::int64_t rows = shapes_[bucket].rows;
  if (++waiting[static_cast<std::size_t>(replica)] == rows) ++full_[bucket];
  if (full_[bucket] < static_cast<std::int64_t>(waiting.size())) return false;
  full_[bucket] = 0;
  for (std::int64_t& samples : waiting) full_[bucket] += (samples -= rows) >= rows ? 1 : 0;
  return true;
}

bool LengthBuckets::can_fill(std::size_t bucket) const {
  for (std::size_t replica = 0; replica < waiting_[bucket].size(); ++replica) {
    std::int64_t samples = 0;
    for (std::size_t from = 0; from <= bucket; ++from) samples += waiting_[from][replica];
    if (samples < shapes_[bucket].rows) return false;
  }
  return true;
}

std::optional<std::size_t> LengthBuckets::fill(Counts& given) {
  std::size_t bucket = 0;
  while (bucket < shapes_.size() && !can_fill(bucket)) ++bucket;
  if (bucket == shapes_.size()) return std::nullopt;
  for (std::size_t replica = 0; replica < waiting_[bucket].size(); ++replica) {
    std::int64_t missing = shapes_[bucket].rows;
    for (std::size_t from = bucket + 1; from-- > 0;) {
      std::int64_t& samples = waiting_[from][replica];
      given[from][replica] = std::min(samples, missing);
      samples -= given[from][replica];
      missing -= given[from][replica];
    }
  }
  return bucket;
}

std::optional<std::size_t> LengthBuckets::flush(Counts& given) {
  for (std::size_t bucket = 0; bucket < shapes_.size(); ++bucket) {
    auto& waiting = waiting_[bucket];
    if (std::all_of(waiting.begin(), waiting.end(), [](std::int64_t samples) { return samples == 0; }))
      continue;
    for (std::size_t replica = 0; replica < waiting.size(); ++replica) {
      given[bucket][replica] = std::min(waiting[replica], shapes_[bucket].rows);
      waiting[replica] -= given[bucket][replica];
    }
    return bucket;
  }
  return std::nullopt;
}

std::unique_ptr<PartReader> make_bucket_reader(const ReadSettings& settings, const PartOptions& options) {
  return std::make_unique<BucketReader>(settings, options);
}

std::int64_t bucket_batches(const std::shared_ptr<const ShardFacts>& facts, const PartOptions& options) {
  EpochBuckets buckets(facts, options);
  std::int64_t batches = 0;
  while (*buckets.next([](const EpochBuckets::Added&) { return base::Status(); })) ++batches;
  return batches;
}

}  // namespace sluice::data
