// The room's entry: installs kernels for this machine's CPU, which XLA's programs call.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/pjrt/plugin.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Registers the kernels with the plugin, for programs of `local_replicas` replicas on this machine. The
// result lists the kernels and lives as long as the process. kNotFound or kUnimplemented if the machine has
// no library for them: programs must then do without. Threads: any.
base::Result<const stablehlo::KernelLibrary*> install(const pjrt::Plugin& plugin, int local_replicas);

// Returns the names of the choices among this room's algorithms, such as "winograd", that leave_out() knows
// besides the names of the patterns.
std::span<const std::string_view> choices();
// Leaves out these choices and patterns in all programs that are compiled from now on. Kernels that were made
// before stay, so this comes before the first program. Threads: no other may use the kernels meanwhile.
void leave_out(const std::vector<std::string>& names);

// Returns the number of threads that the calls of `local_replicas` replicas of this process use together.
int threads_of_replicas(int local_replicas);

// Measures the FLOP/s of products of f32 matrices that stay in the caches, on `threads` threads at once, each
// with its own matrices and the fastest kernel: the best of `rounds` rounds of 0.01 s. 0 without a fast
// kernel. Other work on the machine can only lower the result. Threads: any.
double measure_f32_peak(int threads, int rounds);

// Measures the bytes a second that `threads` threads together read and write in sums of two arrays of f32
// that no cache holds, all three arrays counted: the best of `rounds` rounds, over 192 MiB. Otherwise as
// above.
double measure_bandwidth(int threads, int rounds);

}  // namespace sluice::kernels
