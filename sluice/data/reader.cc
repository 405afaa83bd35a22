#include "sluice/data/reader.h"

#include <utility>

namespace sluice::data {
namespace {

constexpr std::uint64_t kOrder = 1;  // sets these numbers apart from those of the augmentation

}  // namespace

EpochReader::EpochReader(ReaderOptions options)
    : options_(std::move(options)),
      random_({options_.seed, static_cast<std::uint64_t>(options_.epoch), kOrder}) {
  if (options_.shuffle) random_.shuffle(options_.urls);
}

base::Result<bool> EpochReader::next_in_shards(RawSample& sample) {
  while (true) {
    if (options_.cancelled != nullptr && *options_.cancelled)
      return base::fail(Code::kCancelled, "cancelled");
    if (!shard_) {
      if (next_url_ == options_.urls.size()) return false;
      SourceOptions source_options;
      source_options.cancelled = options_.cancelled;
      SLUICE_TRY(auto source, open_source(options_.urls[next_url_++], source_options));
      shard_ = std::make_unique<ShardReader>(std::move(source), options_.wanted);
      shard_offset_ = 0;
    }
    SLUICE_TRY(const bool found, shard_->next(sample));
    bytes_ += static_cast<std::int64_t>(shard_->offset() - shard_offset_);
    shard_offset_ = shard_->offset();
    if (found) return true;
    shard_.reset();
    ++shards_;
  }
}

bool EpochReader::buffer_is_full() const {
  return static_cast<std::int64_t>(buffer_.size()) >= options_.buffer_samples ||
         (buffered_bytes_ >= options_.buffer_bytes && !buffer_.empty());
}

base::Result<bool> EpochReader::next(RawSample& sample) {
  if (!options_.shuffle || options_.buffer_samples <= 1) return next_in_shards(sample);
  RawSample fresh;
  while (!exhausted_ && !buffer_is_full()) {
    SLUICE_TRY(const bool found, next_in_shards(fresh));
    exhausted_ = !found;
    if (!found) break;
    buffered_bytes_ += static_cast<std::int64_t>(fresh.bytes());
    buffer_.push_back(std::move(fresh));
  }
  if (buffer_.empty()) return false;
  std::swap(buffer_[random_.below(buffer_.size())], buffer_.back());
  sample = std::move(buffer_.back());
  buffer_.pop_back();
  buffered_bytes_ -= static_cast<std::int64_t>(sample.bytes());
  return true;
}

base::Result<std::int64_t> count_samples(const std::string& url) {
  SLUICE_TRY(auto source, open_source(url));
  ShardReader reader(std::move(source), Wanted{false, {}});
  RawSample sample;
  for (std::int64_t count = 0;; ++count) {
    SLUICE_TRY(const bool found, reader.next(sample));
    if (!found) return count;
  }
}

}  // namespace sluice::data
