#include "sluice/data/order/sequence_packer.h"

#include <algorithm>
#include <utility>

namespace sluice::data {

SequencePacker::SequencePacker(std::int64_t length, std::int64_t window, TooLong too_long)
    : length_(length), window_(static_cast<std::size_t>(window)), too_long_(too_long) {}

base::Status SequencePacker::add(std::int64_t length, std::vector<PackedSequence>& done) {
  if (length > length_ && too_long_ == TooLong::kError)
    return base::fail(Code::kInvalidArgument, "document ", documents_, " has a length of ", length,
                      ": expected at most ", length_,
                      ", the length of a sequence; or let what is longer be cut");
  const std::int64_t number = documents_++;
  cut_ += length > length_ ? 1 : 0;
  length = std::min(length, length_);
  if (length == 0) return {};
  const auto found =
      std::find_if(rooms_.begin(), rooms_.end(), [length](std::int64_t room) { return room >= length; });
  const auto place = static_cast<std::size_t>(found - rooms_.begin());
  if (found == rooms_.end()) {
    if (free_.empty()) {
      free_.push_back(slots_.size());
      slots_.emplace_back();
    }
    open_.push_back(free_.back());
    rooms_.push_back(length_);
    free_.pop_back();
  }
  slots_[open_[place]].documents.push_back({number, length_ - rooms_[place], length});
  rooms_[place] -= length;
  if (rooms_[place] == 0)
    give(place, done);
  else if (open_.size() > window_)
    give(0, done);
  return {};
}

void SequencePacker::give(std::size_t place, std::vector<PackedSequence>& done) {
  PackedSequence& sequence = slots_[open_[place]];
  done.push_back(std::move(sequence));
  sequence.documents.clear();
  free_.push_back(open_[place]);
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(place));
  rooms_.erase(rooms_.begin() + static_cast<std::ptrdiff_t>(place));
}

void SequencePacker::finish(std::vector<PackedSequence>& done) {
  for (const std::size_t slot : open_) done.push_back(std::move(slots_[slot]));
  open_.clear();
  rooms_.clear();
  slots_.clear();
  free_.clear();
}

std::vector<std::int64_t> SequencePacker::waiting() const {
  std::vector<std::int64_t> documents;
  for (const std::size_t slot : open_)
    for (const PackedDocument& one : slots_[slot].documents) documents.push_back(one.document);
  std::sort(documents.begin(), documents.end());
  return documents;
}

void fill_borders(const PackedSequence& sequence, std::int64_t length, std::int32_t* ordinals,
                  std::int32_t* positions) {
  std::fill_n(ordinals, length, 0);
  std::fill_n(positions, length, 0);
  std::int32_t ordinal = 0;
  for (const PackedDocument& one : sequence.documents) {
    std::fill_n(ordinals + one.begin, one.length, ++ordinal);
    for (std::int64_t i = 0; i < one.length; ++i) positions[one.begin + i] = static_cast<std::int32_t>(i);
  }
}

}  // namespace sluice::data
