// Which process writes which part of a checkpoint's values, where several processes hold the same.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/device/sharding/block_places.h"

namespace sluice::sessions {

// A part of a block: `start` is its place in the whole value.
struct WrittenPiece {
  size_t block = 0;  // Blocks::places[block]
  std::vector<int64_t> start, sizes;
  int process = 0;  // one of the processes that hold the block
};

// Divides the bytes of all values evenly: each process writes bytes ÷ processes, ±1/8 of this, as far as the
// processes hold the same blocks. A large block that several processes hold is cut along one dimension, so a
// value's pieces form a grid (piece_index.h). Processes that give equal places get equal answers, in the
// order of the values and of their blocks.
std::vector<std::vector<WrittenPiece>> divide_among(const std::vector<device::Blocks>& values, int processes);

}  // namespace sluice::sessions
