// What becomes of memory that a program gives back.
#pragma once

namespace sluice::kernels {

// From now on the process keeps freed memory for its next use instead of giving it back to the system: XLA's
// CPU plugin takes the memory of a program's intermediate values anew for each launch, and a step of
// ResNet-50 spends a seventh of its time in the page faults. The memory comes in huge pages where the system
// has them (as much of it as half of the machine's): neighbouring rows of a picture lie pages apart. glibc's
// allocator only; threads that were started before keep their own pools.
void keep_freed_memory();

}  // namespace sluice::kernels
