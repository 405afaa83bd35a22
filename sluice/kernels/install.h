// The room's entry: kernels for this machine's CPU, called from inside XLA's programs.
#pragma once

#include "sluice/pjrt/plugin.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Makes the kernels known to the plugin, for programs of so many replicas on this machine. What is returned
// says which there are; it lives as long as the process. kNotFound or kUnimplemented where the machine has no
// library for them: programs must then do without. Threads: any.
base::Result<const stablehlo::KernelLibrary*> install(const pjrt::Plugin& plugin, int local_replicas);

}  // namespace sluice::kernels
