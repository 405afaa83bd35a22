#include "sluice/session/stored/stored_ranges.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace sluice::sessions {
namespace stored_ranges_detail {

// A gap that takes longer to read than a further request.
constexpr uint64_t kLongGap = uint64_t{8} << 20;
// More ranges than this, of fewer bytes on average, are too many requests to a server.
constexpr size_t kManyRanges = 4096;
constexpr uint64_t kShortRange = uint64_t{64} << 10;

// The common part of a piece and a box.
struct Common {
  std::vector<int64_t> start, sizes;  // in the tensor
  bool empty = false;
};

Common common_part(const StoredPiece& piece, const StoredBox& box) {
  Common common;
  for (size_t d = 0; d < box.sizes.size(); ++d) {
    const int64_t first = std::max(piece.start[d], box.start[d]);
    const int64_t end = std::min(piece.start[d] + piece.sizes[d], box.start[d] + box.sizes[d]);
    common.start.push_back(first);
    common.sizes.push_back(std::max<int64_t>(end - first, 0));
    common.empty = common.empty || end <= first;
  }
  return common;
}

// Returns the place of `at` in the row-major order of a block.
int64_t place_in(const std::vector<int64_t>& start, const std::vector<int64_t>& sizes,
                 const std::vector<int64_t>& at) {
  int64_t place = 0;
  for (size_t d = 0; d < at.size(); ++d) place = place * sizes[d] + at[d] - start[d];
  return place;
}

// Returns the first of the last dimensions that are whole in piece and box: rows of the dimension before them
// lie next to each other in both.
size_t first_whole(const Common& common, const StoredPiece& piece, const StoredBox& box) {
  size_t d = common.sizes.size();
  while (d > 0 && common.sizes[d - 1] == piece.sizes[d - 1] && common.sizes[d - 1] == box.sizes[d - 1]) --d;
  return d;
}

// Moves `at` to the next place of the part along its first `dims` dimensions; false at the end.
bool advance(std::vector<int64_t>& at, const Common& common, size_t dims) {
  for (size_t d = dims; d-- > 0;) {
    if (++at[d] < common.start[d] + common.sizes[d]) return true;
    at[d] = common.start[d];
  }
  return false;
}

void cut_long(std::vector<Segment>& segments, const std::vector<uint64_t>& element_bytes, uint64_t longest) {
  for (size_t i = 0; i < segments.size(); ++i) {
    while (segments[i].bytes > longest) {
      Segment head = segments[i];
      head.bytes = longest;
      segments[i].begin += longest;
      segments[i].bytes -= longest;
      segments[i].to += static_cast<int64_t>(longest / element_bytes[head.box]);
      segments.push_back(head);
    }
  }
}

// The rule that joins a segment to the range before it.
struct Joining {
  double waste;
  uint64_t longest;

  bool joins(const ByteRange& range, uint64_t needed, const Segment& next) const {
    if (next.file != range.file || next.begin < range.end) return false;
    const uint64_t end = next.begin + next.bytes;
    return next.begin - range.end <= kLongGap && end - range.begin <= longest &&
           static_cast<double>(end - range.begin) <= waste * static_cast<double>(needed + next.bytes);
  }
};

std::vector<ByteRange> joined(const std::vector<Segment>& segments, const Joining& joining) {
  std::vector<ByteRange> ranges;
  uint64_t needed = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    const Segment& next = segments[i];
    if (!ranges.empty() && joining.joins(ranges.back(), needed, next)) {
      ranges.back().end = next.begin + next.bytes;
      ranges.back().last = i + 1;
      needed += next.bytes;
    } else {
      ranges.push_back({next.file, next.begin, next.begin + next.bytes, i, i + 1});
      needed = next.bytes;
    }
  }
  return ranges;
}

}  // namespace stored_ranges_detail

void add_segments(const StoredPiece& piece, const StoredBox& box, uint64_t element_bytes, Segment like,
                  std::vector<Segment>& segments) {
  namespace detail = stored_ranges_detail;
  const detail::Common common = detail::common_part(piece, box);
  if (common.empty) return;
  const size_t whole = detail::first_whole(common, piece, box);
  const size_t outer = whole == 0 ? 0 : whole - 1;
  uint64_t elements = 1;
  for (size_t d = outer; d < common.sizes.size(); ++d) elements *= static_cast<uint64_t>(common.sizes[d]);
  std::vector<int64_t> at = common.start;
  do {
    Segment segment = like;
    segment.begin =
        piece.begin + static_cast<uint64_t>(detail::place_in(piece.start, piece.sizes, at)) * element_bytes;
    segment.bytes = elements * element_bytes;
    segment.to = detail::place_in(box.start, box.sizes, at);
    segments.push_back(segment);
  } while (detail::advance(at, common, outer));
}

bool fills_box(std::vector<Segment> segments, const StoredBox& box, uint64_t element_bytes) {
  std::sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) { return a.to < b.to; });
  int64_t next = 0, wanted = 1;
  for (const int64_t size : box.sizes) wanted *= size;
  for (const Segment& segment : segments) {
    if (segment.to != next) return false;
    next += static_cast<int64_t>(segment.bytes / element_bytes);
  }
  return next == wanted;
}

std::vector<ByteRange> plan_ranges(std::vector<Segment>& segments, const std::vector<uint64_t>& element_bytes,
                                   const StoredReadOptions& options, bool elsewhere) {
  namespace detail = stored_ranges_detail;
  detail::cut_long(segments, element_bytes, options.range_bytes);
  std::sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) {
    return std::tie(a.file, a.begin, a.box) < std::tie(b.file, b.begin, b.box);
  });
  std::vector<ByteRange> ranges = detail::joined(segments, {options.waste, options.range_bytes});
  uint64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += range.end - range.begin;
  if (elsewhere && ranges.size() > detail::kManyRanges && bytes / ranges.size() < detail::kShortRange)
    ranges = detail::joined(segments, {std::numeric_limits<double>::infinity(), options.range_bytes});
  return ranges;
}

}  // namespace sluice::sessions
