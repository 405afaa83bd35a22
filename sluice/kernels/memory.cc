#include "sluice/kernels/memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <climits>
#include <cstdint>
#include <cstdlib>

namespace sluice::kernels {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
// Less than what glibc keeps at most when memory is freed (M_TRIM_THRESHOLD is an int).
constexpr size_t kReserved = size_t{3} << 29;

// The next memory of the pool will come from here: addresses only, until they are written.
void reserve_huge_pages() {
  void* const memory = std::malloc(kReserved);
  if (memory == nullptr) return;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (address + kHugePage - 1) / kHugePage * kHugePage;
  ::madvise(reinterpret_cast<void*>(first), (address + kReserved - first) / kHugePage * kHugePage,
            MADV_HUGEPAGE);
  std::free(memory);
}

}  // namespace

void keep_freed_memory() {
#ifdef __GLIBC__
  // Only the main pool may hold blocks of any size: those of other threads are limited to 64 MiB.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
  ::mallopt(M_TOP_PAD, 64 << 20);
#ifndef __SANITIZE_ADDRESS__  // which has another allocator
  reserve_huge_pages();
#endif
#endif
}

}  // namespace sluice::kernels
