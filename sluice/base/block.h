// Memory for large buffers, which the kernel provides in pages of 2 MiB where it can: a buffer of 16 MiB then
// costs 8 page faults at its first use instead of 4096.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace sluice::base {

struct FreeBlock {
  void operator()(char* data) const { std::free(data); }
};
using Block = std::unique_ptr<char[], FreeBlock>;

// Returns at least `bytes` bytes, uninitialised and aligned to 64 bytes; `bytes` is set to the number
// allocated.
inline Block make_block(std::size_t& bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  bytes = (bytes + alignment - 1) / alignment * alignment;
  Block block(static_cast<char*>(std::aligned_alloc(alignment, bytes)));
  if (block == nullptr) throw std::bad_alloc();
  if (alignment == kHugePage) ::madvise(block.get(), bytes, MADV_HUGEPAGE);
  return block;
}

}  // namespace sluice::base
