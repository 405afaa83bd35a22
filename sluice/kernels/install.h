// The room's entry: kernels for this machine's CPU, called from inside XLA's programs.
#pragma once

#include "sluice/pjrt/plugin.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Makes the kernels known to the plugin, for programs of so many replicas on this machine. What is returned
// says which there are; it lives as long as the process. kNotFound or kUnimplemented where the machine has no
// library for them: programs must then do without. Threads: any.
base::Result<const stablehlo::KernelLibrary*> install(const pjrt::Plugin& plugin, int local_replicas);

// The threads that the calls of so many replicas of this process have together.
int threads_of_replicas(int local_replicas);

// FLOP/s of products of f32 matrices that stay in the caches, each thread with its own, on so many threads at
// once: measured with the fastest kernel that there is, the best of so many rounds of 0.01 s. 0 where there
// is no fast kernel. What else the machine does meanwhile makes it less, never more. Threads: any.
double measure_f32_peak(int threads, int rounds);

// Bytes a second that so many threads together read and write in sums of two arrays of f32 which no cache
// holds, all three arrays counted: the best of so many rounds, over 192 MiB. Otherwise as above.
double measure_bandwidth(int threads, int rounds);

}  // namespace sluice::kernels
