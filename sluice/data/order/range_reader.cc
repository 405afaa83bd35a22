#include "sluice/data/order/range_reader.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/log.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/data/shards/shard_facts.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/shards/urls.h"

namespace sluice::data {
namespace {

bool cancelled(const ReadSettings& settings) {
  return settings.source.cancelled != nullptr && *settings.source.cancelled;
}

// Returns the record in sizes.json of a local shard that was not counted; nothing if the file is unreadable.
std::optional<ShardRecord> record_of(const std::string& url) {
  if (is_remote(url) || !can_be_read_again(url)) return std::nullopt;
  const auto record = FolderSizes().find(url);
  return record ? *record : std::nullopt;
}

// Checks the number of samples of such a shard, after it was read to its end: an archive that ends in zeros
// too early looks whole, but its index file, or else sizes.json, has the right number.
base::Status check_count(const std::string& url, const std::optional<ShardRecord>& record,
                         std::int64_t samples) {
  if (is_remote(url) || !can_be_read_again(url)) return {};
  std::optional<std::int64_t> expected;
  if (const auto index = read_index(url); index && *index)
    expected = static_cast<std::int64_t>((*index)->samples.size());
  if (!expected && record) expected = record->samples;
  if (!expected || *expected <= samples) return {};
  return base::fail(Code::kDataLoss, base::shown_urls(url), ": it ends after ",
                    base::counted(samples, "sample"), ": expected ", *expected,
                    " as its index or sizes.json says; if the shard is right, make the index again with "
                    "'sluice data index'");
}

// The bytes between two samples from which on the shard is opened again, and not read on: about what a reader
// reads ahead, and what a server sends in the time of two requests.
constexpr std::uint64_t kFarInFile = 1 << 17, kFarInRemote = 2 << 20;

// Waits; false if reading was cancelled meanwhile.
bool pause(const ReadSettings& settings, double seconds) {
  if (settings.pause) {
    settings.pause(seconds);
    return !cancelled(settings);
  }
  const base::Stopwatch waited;
  while (waited.seconds() < seconds && !cancelled(settings))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return !cancelled(settings);
}

}  // namespace

void hold_sample(RawSample& sample, ReaderMemory& memory) {
  const auto status =
      memory.grow(sample.bytes(), [&sample] { return base::str(sample.where(), ": its members"); });
  if (status) return;
  const auto shard = sample.shard;
  sample = RawSample{};
  sample.shard = shard;
  sample.failed = std::make_shared<const Error>(status.error());
}

RangeReader::RangeReader(const ReadSettings& settings, RangeOptions options)
    : settings_(settings), options_(std::move(options)) {
  length_ = 0;
  for (const Segment& segment : options_.segments) {
    if (segment.count == kToTheEnd) {
      length_.reset();
      break;
    }
    *length_ += segment.count;
    ends_.push_back(*length_);
  }
}

std::size_t RangeReader::wanted_slots() const {
  if (options_.initial == 0) return static_cast<std::size_t>(options_.capacity);
  const auto grown = std::min<std::int64_t>(options_.capacity, static_cast<std::int64_t>(buffer_.size()) + 2);
  return static_cast<std::size_t>(std::max(grown, std::min(options_.initial, options_.capacity)));
}

// Takes in the range's next sample, which is read only if it is needed; false at the range's end.
base::Result<bool> RangeReader::enter(bool read, RawSample& sample) {
  if (exhausted_ || entered_ == length_) return false;
  if (!length_) {
    SLUICE_TRY(const bool found, read_next(sample));
    exhausted_ = !found;
    if (!found) return false;
  } else if (read) {
    SLUICE_OK(read_at(entered_, sample));
  }
  ++entered_;
  return true;
}

base::Status RangeReader::fill(bool read) {
  const std::size_t wanted = wanted_slots();
  while (buffer_.size() < wanted) {
    if (options_.max_bytes > 0 && buffered_bytes_ >= options_.max_bytes && !buffer_.empty()) break;
    Slot slot{entered_, {}};
    SLUICE_TRY(const bool found, enter(read, slot.sample));
    if (!found) break;
    if (read || !length_) hold_sample(slot.sample, memory_);
    if (options_.max_bytes > 0) buffered_bytes_ += static_cast<std::int64_t>(slot.sample.bytes());
    buffer_.push_back(std::move(slot));
  }
  return {};
}

RangeReader::Slot RangeReader::draw() {
  if (buffer_.size() > 1) std::swap(buffer_[options_.random.below(buffer_.size())], buffer_.back());
  Slot slot = std::move(buffer_.back());
  buffer_.pop_back();
  memory_.shrink(slot.sample.bytes());
  if (options_.max_bytes > 0) buffered_bytes_ -= static_cast<std::int64_t>(slot.sample.bytes());
  return slot;
}

// Repeats the draws before the first one that is requested, then reads the samples that are in the buffer.
base::Status RangeReader::begin() {
  begun_ = true;
  if (options_.capacity == 1 && length_) {
    entered_ = std::min(options_.skip, *length_);
    return {};
  }
  for (std::int64_t i = 0; i < options_.skip; ++i) {
    SLUICE_OK(fill(false));
    if (buffer_.empty()) return {};
    static_cast<void>(draw());
  }
  return length_ ? read_waiting() : base::Status();
}

// Whether it is better to open the shard again at a sample than to read on from the sample `before` it.
bool RangeReader::is_far(std::int64_t before, std::int64_t number) const {
  if (before < segment_start_) return false;  // another shard: it is opened in any case
  const auto& starts = settings_.facts->starts_of(segment().shard);
  if (starts.empty()) return false;
  const auto in_shard = [&](std::int64_t sample) {
    return static_cast<std::size_t>(
        settings_.facts->number_of(segment().shard, segment().first + sample - segment_start_));
  };
  return starts[in_shard(number)] - starts[in_shard(before) + 1] >
         (is_remote(url()) ? kFarInRemote : kFarInFile);
}

// Reads the samples that are in the buffer. If their places are known, what is between them is left out.
base::Status RangeReader::read_waiting() {
  std::vector<Slot*> missing;
  for (Slot& slot : buffer_) missing.push_back(&slot);
  std::sort(missing.begin(), missing.end(),
            [](const Slot* a, const Slot* b) { return a->number < b->number; });
  std::size_t run_end = 0;  // one past the last of a run of samples that are near each other
  for (std::size_t i = 0; i < missing.size(); ++i) {
    go_to(missing[i]->number);
    if (i == run_end) {
      shard_.reset();
      if (settings_.facts->places) static_cast<void>(settings_.facts->places->load(segment().shard));
      for (++run_end; run_end < missing.size(); ++run_end) {
        const std::int64_t next = missing[run_end]->number;
        if (next >= segment_start_ + segment().count || is_far(missing[run_end - 1]->number, next)) break;
      }
      // What comes after the last run is read next.
      until_.reset();
      if (run_end < missing.size()) until_ = missing[run_end - 1]->number;
    }
    SLUICE_OK(read_at(missing[i]->number, missing[i]->sample));
    hold_sample(missing[i]->sample, memory_);
  }
  until_.reset();
  return {};
}

base::Result<bool> RangeReader::next(RawSample& sample) {
  if (!begun_) SLUICE_OK(begin());
  if (options_.capacity == 1) return enter(true, sample);
  SLUICE_OK(fill(true));
  if (buffer_.empty()) return false;
  sample = draw().sample;
  return true;
}

// Reads the next sample of a range of unknown length, in the shards' order.
base::Result<bool> RangeReader::read_next(RawSample& sample) {
  while (true) {
    if (segment_ == options_.segments.size()) return false;
    if (!shard_) SLUICE_OK(open(0));
    SLUICE_TRY(const bool found, advance(sample, true));
    if (!found) SLUICE_OK(check_count(url(), record_, at_));
    ++at_;
    if (found) return true;
    shard_.reset();
    ++settings_.shards;
    ++segment_;
  }
}

// Moves to the segment of a sample; numbers only grow from call to call.
void RangeReader::go_to(std::int64_t number) {
  while (number >= segment_start_ + segment().count) {
    segment_start_ += segment().count;
    ++segment_;
    shard_.reset();
    lost_ = nullptr;
  }
}

std::optional<std::pair<std::size_t, std::int64_t>> RangeReader::next_place() {
  begun_ = true;
  static_cast<void>(fill(false));  // fails only when it reads
  if (buffer_.empty()) return std::nullopt;
  const std::int64_t number = draw().number;
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), number);
  const Segment& found = options_.segments[static_cast<std::size_t>(end - ends_.begin())];
  return std::pair(found.shard, found.first + number - (*end - found.count));
}

base::Status RangeReader::read_at(std::int64_t number, RawSample& sample) {
  go_to(number);
  const std::int64_t place = segment().first + number - segment_start_;
  const std::int64_t in_shard = settings_.facts->number_of(segment().shard, place);
  if (!lost_) {
    base::Status status = try_read(in_shard, sample);
    if (!status && settings_.on_error == OnError::kRetry) status = retry(std::move(status), in_shard, sample);
    if (status) {
      const auto& lengths = settings_.facts->lengths;
      if (!lengths.empty()) sample.length = lengths[segment().shard][static_cast<std::size_t>(place)];
      return {};
    }
    if (is_final(status.error())) return status;
    const bool opened = shard_ != nullptr;
    shard_.reset();
    sample = RawSample{};
    sample.failed = std::make_shared<const Error>(status.error());
    // If the samples' positions are known, the shard's next sample may well be whole.
    if (!opened || settings_.facts->starts_of(segment().shard).empty()) lost_ = sample.failed;
  } else {
    sample = RawSample{};
    sample.failed = lost_;
  }
  sample.shard = std::make_shared<const std::string>(base::shown_urls(url()));
  return {};
}

// Whether every policy stops here. With kFailedPrecondition the shard has more samples than are known: to
// continue would lose them uncounted.
bool RangeReader::is_final(const Error& error) const {
  return settings_.on_error == OnError::kStop || error.code() == Code::kCancelled ||
         error.code() == Code::kFailedPrecondition;
}

base::Status RangeReader::retry(base::Status status, std::int64_t in_shard, RawSample& sample) {
  for (const double seconds : settings_.pauses) {
    if (status || is_final(status.error()) || !pause(settings_, seconds)) break;
    shard_.reset();
    status = try_read(in_shard, sample);
  }
  return status;
}

base::Status RangeReader::try_read(std::int64_t in_shard, RawSample& sample) {
  try {
    return read_sample(in_shard, sample);
  } catch (const std::bad_alloc&) {
    return base::fail(Code::kResourceExhausted, base::shown_urls(url()), ": no memory to read its sample ",
                      in_shard);
  }
}

base::Status RangeReader::read_sample(std::int64_t in_shard, RawSample& sample) {
  if (!shard_) SLUICE_OK(open(in_shard));
  const std::int64_t expected = settings_.facts->stored_in(segment().shard);
  while (at_ <= in_shard) {
    SLUICE_TRY(const bool found, advance(sample, at_ == in_shard));
    if (!found)
      return base::fail(Code::kDataLoss, base::shown_urls(url()), ": it ends after ",
                        base::counted(at_, "sample"), ": expected ", expected,
                        " as its index, sizes.json or the given size says; if the shard is right, make the "
                        "index again with 'sluice data index'");
    ++at_;
  }
  if (in_shard < last_of_segment()) return {};
  if (!limited()) {
    const auto end = expect_end();
    if (!end && is_final(end.error())) return end;
    if (!end)
      base::warn(end.error().what(), "; its ", base::counted(expected, "sample"), " came before this");
  }
  shard_.reset();
  ++settings_.shards;
  return {};
}

std::int64_t RangeReader::last_of_segment() const {
  return settings_.facts->number_of(segment().shard, segment().first + segment().count - 1);
}

// Whether the shard was opened only up to the segment's end.
bool RangeReader::limited() const {
  return segment().count != kToTheEnd && last_of_segment() + 1 < settings_.facts->stored_in(segment().shard);
}

base::Status RangeReader::expect_end() {
  RawSample more;
  SLUICE_TRY(const bool found, advance(more, false));
  if (!found) return {};
  return base::fail(Code::kFailedPrecondition, base::shown_urls(url()), ": it has more than the ", at_,
                    " samples that its index, sizes.json or the given size says: make the index again with "
                    "'sluice data index'");
}

base::Status RangeReader::open(std::int64_t in_shard) {
  SourceOptions options = settings_.source;
  at_ = 0;
  bool part = false;
  std::size_t members = 0;
  std::uint64_t begin = 0;  // in the archive
  std::optional<Packing> packing;
  ShardPlaces* const places = settings_.facts ? settings_.facts->places.get() : nullptr;
  if (places != nullptr) SLUICE_OK(places->load(segment().shard));
  if (settings_.facts) {
    const auto& starts = settings_.facts->starts_of(segment().shard);
    options.version = settings_.facts->versions[segment().shard];
    options.expected = settings_.facts->unread_sums[segment().shard];
    if (!starts.empty()) {
      at_ = in_shard;
      options.begin = begin = starts[static_cast<std::size_t>(in_shard)];
      const std::int64_t last = last_to_read();
      part = last + 1 < settings_.facts->stored_in(segment().shard);
      if (part) options.end = starts[static_cast<std::size_t>(last + 1)];
    } else if (places != nullptr && !options.version.empty()) {
      // Without an index, other readers of the same content may have come by this place.
      const ShardPlaces::Place place = places->last_before(segment().shard, in_shard);
      at_ = place.sample;
      begin = place.offset;
      members = place.members;
      const bool may_be_packed = places->may_be_packed(segment().shard);
      (may_be_packed ? options.unpacked_begin : options.begin) = place.offset;
      if (may_be_packed) options.packing = &packing.emplace(Packing::kNone);
      if (may_be_packed && in_shard > 0) {
        options.places = places->unpacking(segment().shard);
        places->count_passage(segment().shard, settings_.facts->bytes / settings_.urls->size());
      }
    }
  }
  if (!settings_.facts) {
    record_ = record_of(url());
    if (record_) options.expected = record_->sum;
  }
  SLUICE_TRY(auto source, open_source(url(), options));
  // A place in the middle was learned from the shard's start, which showed the packing.
  if (packing && begin == 0) places->set_packing(segment().shard, *packing);
  shard_ =
      std::make_unique<ShardReader>(std::move(source), settings_.wanted, ArchivePart{begin, part}, members);
  shard_offset_ = shard_->offset();
  return {};
}

// Returns the number in the shard of the last sample that it is opened for.
std::int64_t RangeReader::last_to_read() const {
  if (!until_) return last_of_segment();
  return settings_.facts->number_of(segment().shard, segment().first + *until_ - segment_start_);
}

// Returns where the next sample of the shard ends, or 0 if that is not known.
std::uint64_t RangeReader::end_of_next() const {
  if (!settings_.facts) return 0;
  const auto& starts = settings_.facts->starts_of(segment().shard);
  const auto next = static_cast<std::size_t>(at_) + 1;
  if (next < starts.size()) return starts[next];
  return next == starts.size() ? settings_.facts->end_of_last(segment().shard) : 0;
}

// Records where the next sample of a shard without an index begins, for other readers of the shard.
void RangeReader::learn_place(const RawSample& sample) const {
  if (!settings_.facts || !settings_.facts->places || sample.fields.empty()) return;
  const std::size_t shard = segment().shard;
  if (settings_.facts->versions[shard].empty() || !settings_.facts->starts_of(shard).empty()) return;
  settings_.facts->places->learn(shard, {at_ + 1, end_of(sample), shard_->members_so_far()});
}

base::Result<bool> RangeReader::advance(RawSample& sample, bool wanted) {
  if (cancelled(settings_)) return base::fail(Code::kCancelled, "cancelled");
  auto found = shard_->next(sample, wanted, end_of_next());
  settings_.bytes += static_cast<std::int64_t>(shard_->offset() - shard_offset_);
  shard_offset_ = shard_->offset();
  if (found && *found) learn_place(sample);
  return found;
}

}  // namespace sluice::data
