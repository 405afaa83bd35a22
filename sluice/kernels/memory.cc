#include "sluice/kernels/memory.h"

#include <malloc.h>

#include <climits>

namespace sluice::kernels {

void keep_freed_memory() {
#ifdef __GLIBC__
  // Only the main pool may hold blocks of any size: those of other threads are limited to 64 MiB.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
  ::mallopt(M_TOP_PAD, 64 << 20);
#endif
}

}  // namespace sluice::kernels
