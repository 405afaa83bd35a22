#include "sluice/kernels/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>

namespace sluice::kernels {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kGlibcsAllocator = false;
#else
constexpr bool kGlibcsAllocator = true;
#endif
constexpr uintptr_t kHugePage = uintptr_t{2} << 20;

// Whether a process may have more addresses than it uses: else they would be missing elsewhere.
bool addresses_cost_nothing() {
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit;
    if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) return false;
  }
  char policy = '2';  // "2": the system counts what is asked for, not what is used
  std::ifstream("/proc/sys/vm/overcommit_memory") >> policy;
  return policy != '2';
}

// The pool's next memory will come from here: addresses only, until they are written.
void reserve_huge_pages() {
  if (!addresses_cost_nothing()) return;
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
  if (kGlibcsAllocator) reserve_huge_pages();
#endif
}

}  // namespace sluice::kernels
