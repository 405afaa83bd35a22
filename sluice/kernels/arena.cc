#include "sluice/kernels/arena.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "sluice/base/check.h"

namespace sluice::kernels {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kAlignment = 64;

// One block for each depth of nesting; a block only grows.
struct Block {
  void* data = nullptr;
  size_t bytes = 0;

  Block() = default;
  Block(Block&& other) noexcept : data(other.data), bytes(other.bytes) { other.data = nullptr; }
  ~Block() { std::free(data); }

  void grow(size_t wanted) {
    if (wanted <= bytes) return;
    std::free(data);
    const bool huge = wanted >= kHugePage;
    const size_t alignment = huge ? kHugePage : kAlignment;
    bytes = (wanted + alignment - 1) / alignment * alignment;
    data = std::aligned_alloc(alignment, bytes);
    if (data == nullptr) {
      bytes = 0;
      throw std::bad_alloc();
    }
    if (huge) ::madvise(data, bytes, MADV_HUGEPAGE);
  }
};

struct Arena {
  std::vector<Block> blocks;
  size_t used = 0;
};
thread_local Arena arena;

}  // namespace

Scratch::Scratch(size_t bytes) : depth_(arena.used) {
  if (depth_ == arena.blocks.size()) arena.blocks.emplace_back();
  arena.blocks[depth_].grow(bytes);
  data_ = arena.blocks[depth_].data;
  ++arena.used;
}

Scratch::~Scratch() {
  --arena.used;
  SLUICE_CHECK(arena.used == depth_);
}

}  // namespace sluice::kernels
