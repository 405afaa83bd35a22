// Which bytes of a file a block consists of, and which of them are read together. Internal to this room.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/session/stored/stored_tensors.h"

namespace sluice::sessions {

// Neighbouring elements of a block that lie next to each other in a file.
struct Segment {
  uint32_t file = 0;   // a number of the caller's
  uint32_t box = 0;    // the same
  uint64_t begin = 0;  // the first byte in the file
  uint64_t bytes = 0;
  int64_t to = 0;  // the first element in the block's row-major order
};

// Adds the segments of the common part of a piece and a box of one tensor.
void add_segments(const StoredPiece& piece, const StoredBox& box, uint64_t element_bytes, Segment like,
                  std::vector<Segment>& segments);

// Returns whether the segments of one box, in any order, are all of its elements, each once.
bool fills_box(std::vector<Segment> segments, const StoredBox& box, uint64_t element_bytes);

// The segments [first, last) of a sorted list are read with the bytes from `begin` up to `end` of a file.
struct ByteRange {
  uint32_t file = 0;
  uint64_t begin = 0, end = 0;
  size_t first = 0, last = 0;
};

// Sorts the segments by file and place, cuts long ones, and joins neighbours (StoredReadOptions). Segments of
// a range do not overlap. `element_bytes` [box]; range_bytes is a multiple of 16. `elsewhere`: each range is
// a request to a server; thousands of small ones are joined over any gap, because they cost more than its
// bytes.
std::vector<ByteRange> plan_ranges(std::vector<Segment>& segments, const std::vector<uint64_t>& element_bytes,
                                   const StoredReadOptions& options, bool elsewhere);

}  // namespace sluice::sessions
