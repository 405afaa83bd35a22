#include "sluice/kernels/arena.h"

#include <vector>

#include "sluice/base/block.h"
#include "sluice/base/check.h"

namespace sluice::kernels {
namespace {

// A thread's memory: one block for each depth of nesting; a block only grows.
struct Room {
  base::Block data;
  size_t bytes = 0;

  void grow(size_t wanted) {
    if (wanted <= bytes) return;
    data.reset();
    bytes = 0;
    data = base::make_block(wanted);
    bytes = wanted;
  }
};

struct Arena {
  std::vector<Room> rooms;
  size_t used = 0;
};
thread_local Arena arena;

}  // namespace

Scratch::Scratch(size_t bytes) : depth_(arena.used) {
  if (depth_ == arena.rooms.size()) arena.rooms.emplace_back();
  arena.rooms[depth_].grow(bytes);
  data_ = arena.rooms[depth_].data.get();
  ++arena.used;
}

Scratch::~Scratch() {
  --arena.used;
  SLUICE_CHECK(arena.used == depth_);
}

}  // namespace sluice::kernels
