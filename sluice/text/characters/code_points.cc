#include "sluice/text/characters/code_points.h"

#include <algorithm>

namespace sluice::text {

CodePoints::CodePoints(std::vector<Range> ranges) : ranges_(std::move(ranges)) { arrange(); }

CodePoints CodePoints::of_places(const std::vector<char32_t>& places) {
  CodePoints set;
  for (std::size_t i = 0; i + 1 < places.size(); i += 2)
    set.ranges_.push_back({places[i], places[i + 1] - 1});
  return set;
}

void CodePoints::arrange() {
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  std::vector<Range> joined;
  for (const Range& range : ranges_) {
    if (!joined.empty() && range.first <= joined.back().last + 1) {
      joined.back().last = std::max(joined.back().last, range.last);
    } else {
      joined.push_back(range);
    }
  }
  ranges_ = std::move(joined);
}

void CodePoints::add(char32_t first, char32_t last) {
  const bool behind = ranges_.empty() || ranges_.back().last + 1 < first;
  ranges_.push_back({first, last});
  if (!behind) arrange();
}

void CodePoints::add(const CodePoints& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  arrange();
}

CodePoints CodePoints::complement() const {
  CodePoints rest;
  char32_t next = 0;
  for (const Range& range : ranges_) {
    if (range.first > next) rest.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) rest.ranges_.push_back({next, kLastCodePoint});
  return rest;
}

CodePoints CodePoints::without(const CodePoints& other) const { return intersection(other.complement()); }

CodePoints CodePoints::intersection(const CodePoints& other) const {
  CodePoints both;
  auto a = ranges_.begin(), b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    const char32_t first = std::max(a->first, b->first), last = std::min(a->last, b->last);
    if (first <= last) both.ranges_.push_back({first, last});
    if (a->last < b->last) {
      ++a;
    } else {
      ++b;
    }
  }
  return both;
}

bool CodePoints::has(char32_t code) const {
  const auto behind =
      std::upper_bound(ranges_.begin(), ranges_.end(), code,
                       [](char32_t value, const Range& range) { return value < range.first; });
  return behind != ranges_.begin() && code <= (behind - 1)->last;
}

}  // namespace sluice::text
