// GPUs that XLA's CUDA plugin compiles for without one: "h100", "h100-8".
#pragma once

#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/estimate/tpu_slice.h"

namespace sluice::estimate {

// So many GPUs of one host. A name without a number is one GPU. kInvalidArgument names those that are known.
base::Result<TpuSlice> find_gpu_slice(const std::string& name);
// "h100-1", "h100-2", …
std::vector<std::string> gpu_slice_names();

// A slice of TPUs or of GPUs. kInvalidArgument as of find_tpu_slice.
base::Result<TpuSlice> find_slice(const std::string& name);

}  // namespace sluice::estimate
