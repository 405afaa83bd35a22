#include "sluice/kernels/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace sluice::kernels {
namespace {

constexpr uintptr_t kHugePage = uintptr_t{2} << 20;

// The pool's next memory will come from here: addresses only, until they are written.
void reserve_huge_pages() {
  const size_t half_of_the_machine =
      static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) / 2 * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const memory = std::malloc(half_of_the_machine);
  if (memory == nullptr) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = (begin + half_of_the_machine) / kHugePage * kHugePage;
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
  std::free(memory);
}

}  // namespace

void keep_freed_memory() {
#ifdef __GLIBC__
  // Only the main pool may hold blocks of any size: those of other threads are limited to 64 MiB.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);  // never
  ::mallopt(M_TOP_PAD, 64 << 20);
#ifndef __SANITIZE_ADDRESS__  // which has another allocator
  reserve_huge_pages();
#endif
#endif
}

}  // namespace sluice::kernels
