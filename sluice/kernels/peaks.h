// What this process's share of the CPU does at most, by its own kernels.
#pragma once

#include "sluice/profile/layers.h"

namespace sluice::kernels {

// A large product's operations, 0 where there is no kernel for it, and the bytes of a sum of two arrays that
// no cache holds, all three counted. Measured at the first call, which takes some 200 ms, on as many threads
// as a call of a kernel has; the best of several rounds. Other work of the machine at that time makes it
// less. Threads: any.
const profile::Peaks& measured_peaks();

}  // namespace sluice::kernels
