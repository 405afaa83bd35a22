// The undecoded samples of one range of an epoch, in the order of its shuffle buffer. A range is a list of
// segments, each a part of a shard.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/random.h"
#include "sluice/data/memory.h"
#include "sluice/data/order/order.h"
#include "sluice/data/shards/group.h"
#include "sluice/data/shards/shard_facts.h"
#include "sluice/data/shards/shard_index.h"

namespace sluice::data {

// The settings that all ranges of a part share.
struct ReadSettings {
  std::shared_ptr<const std::vector<std::string>> urls;
  std::shared_ptr<const ShardFacts> facts;  // null: sizes are not known, ranges go to the shards' ends
  Wanted wanted;
  OnError on_error = OnError::kStop;
  SourceOptions source;
  std::vector<double> pauses = {0.1, 1, 10};  // seconds before each new attempt of OnError::kRetry
  std::function<void(double seconds)> pause;  // called instead of waiting, in tests
  mutable std::atomic<std::int64_t> bytes{0},
      shards{0};  // read; shards that were read to the end of a segment
};

struct RangeOptions {
  std::vector<Segment> segments;
  std::int64_t capacity = 1;  // samples in the shuffle buffer; 1: the order of the range
  // The number of samples in the buffer before the first draw; 0: a full buffer. Above 0 the buffer grows by
  // one with each draw, as webdataset's.
  std::int64_t initial = 0;
  std::int64_t max_bytes = 0;  // limit of the samples in the buffer; for ranges of unknown length, else 0
  base::Random random{0};
  std::int64_t skip = 0;  // samples that were drawn before
};

// Counts a sample in `memory`. A sample without room becomes a bad one: its members are dropped.
void hold_sample(RawSample& sample, ReaderMemory& memory);

// The reader of a range. Skipped samples are not read, except samples that are still in the buffer: the
// random numbers determine which ones. (A range of unknown length is read.) With a policy other than kStop a
// sample that cannot be read is handed out with `failed` set. Threads: one at a time.
class RangeReader {
 public:
  RangeReader(const ReadSettings& settings, RangeOptions options);

  base::Result<bool> next(RawSample& sample);  // false at the end of the range
  // Replaces next() in a range of known length: returns the position of the sample that next() would give, as
  // its shard and its index among the taken samples of that shard. Reads nothing, and ignores `skip`.
  std::optional<std::pair<std::size_t, std::int64_t>> next_place();

 private:
  struct Slot {
    std::int64_t number;  // number of the sample in the range
    RawSample sample;
  };

  std::size_t wanted_slots() const;
  base::Result<bool> enter(bool read, RawSample& sample);
  base::Status fill(bool read);
  Slot draw();
  base::Status begin();
  base::Result<bool> read_next(RawSample& sample);
  base::Status read_at(std::int64_t number, RawSample& sample);
  // `in_shard`: the index among all samples that the shard holds.
  base::Status try_read(std::int64_t in_shard, RawSample& sample);
  base::Status read_sample(std::int64_t in_shard, RawSample& sample);
  bool is_final(const Error& error) const;
  base::Status open(std::int64_t in_shard);
  base::Status expect_end();
  base::Result<bool> advance(RawSample& sample, bool wanted);
  std::uint64_t end_of_next() const;
  base::Status retry(base::Status status, std::int64_t in_shard, RawSample& sample);
  void go_to(std::int64_t number);
  const Segment& segment() const { return options_.segments[segment_]; }
  const std::string& url() const { return (*settings_.urls)[segment().shard]; }
  std::int64_t last_of_segment() const;
  std::int64_t last_to_read() const;
  bool limited() const;
  base::Status read_waiting();
  bool is_far(std::int64_t before, std::int64_t number) const;
  void learn_place(const RawSample& sample) const;

  const ReadSettings& settings_;
  RangeOptions options_;
  std::optional<std::int64_t> length_;  // of the range, if it is known
  std::vector<std::int64_t> ends_;      // of the segments, in the range's numbers, if their lengths are known
  std::vector<Slot> buffer_;
  std::int64_t buffered_bytes_ = 0;
  ReaderMemory memory_;       // for buffer_
  std::int64_t entered_ = 0;  // samples that have entered the buffer
  bool begun_ = false, exhausted_ = false;

  std::size_t segment_ = 0;
  std::int64_t segment_start_ = 0;  // number in the range of the segment's first sample
  std::unique_ptr<ShardReader> shard_;
  std::optional<std::int64_t> until_;  // the last sample that shard_ is opened for; nothing: the segment's
  std::int64_t at_ = 0;                // the sample that shard_ gives next
  std::uint64_t shard_offset_ = 0;
  std::optional<ShardRecord> record_;  // of the shard, if nothing was known of it before
  std::shared_ptr<const Error> lost_;  // why the rest of this segment cannot be read
};

}  // namespace sluice::data
