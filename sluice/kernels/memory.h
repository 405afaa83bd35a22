// What becomes of memory that a program gives back.
#pragma once

namespace sluice::kernels {

// From now on the process keeps freed memory for its next use instead of giving it back to the system. XLA's
// CPU plugin takes the memory of a program's intermediate values anew for each launch, and a step of
// ResNet-50 spends a seventh of its time in the page faults. The first 1.5 GiB that it takes from here on lie in
// huge pages, where the system has them: activations of a convolution are read in rows that lie a page or more
// apart. glibc's allocator only; threads that were started before keep their own pools.
void keep_freed_memory();

}  // namespace sluice::kernels
