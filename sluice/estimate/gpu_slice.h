// GPUs that XLA's CUDA plugin compiles for without having one: "h100", "h100-8".
#pragma once

#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/estimate/tpu_slice.h"

namespace sluice::estimate {

// Returns the GPUs of one host. A name without a number is one GPU. kInvalidArgument names the known ones.
base::Result<TpuSlice> find_gpu_slice(const std::string& name);
// Returns "h100-1", "h100-2", …
std::vector<std::string> gpu_slice_names();

// Returns a slice of TPUs, several of them as one, or GPUs. kInvalidArgument as in find_tpu_slices().
base::Result<TpuSlice> find_slice(const std::string& name);

}  // namespace sluice::estimate
