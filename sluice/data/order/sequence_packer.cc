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
  auto place = std::find_if(open_.begin(), open_.end(),
                            [&](const PackedSequence& one) { return one.used() + length <= length_; });
  if (place == open_.end()) {
    open_.emplace_back();
    place = open_.end() - 1;
  }
  place->documents.push_back({number, place->used(), length});
  if (place->used() < length_ && open_.size() <= window_) return {};
  if (place->used() < length_) place = open_.begin();
  done.push_back(std::move(*place));
  open_.erase(place);
  return {};
}

void SequencePacker::finish(std::vector<PackedSequence>& done) {
  std::move(open_.begin(), open_.end(), std::back_inserter(done));
  open_.clear();
}

std::vector<std::int64_t> SequencePacker::waiting() const {
  std::vector<std::int64_t> documents;
  for (const PackedSequence& sequence : open_)
    for (const PackedDocument& one : sequence.documents) documents.push_back(one.document);
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
