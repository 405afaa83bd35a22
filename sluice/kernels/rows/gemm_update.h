// A product that is a weight's gradient, and the weight's update by it, in one call: the gradient is used
// where it was made, in the caches. Internal to this room.
#pragma once

#include "sluice/kernels/call.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Whether it is faster than the two calls.
bool has_gemm_update(const stablehlo::ProductCall& call);
// The handler.
base::Status call_gemm_update(const Call& call);

}  // namespace sluice::kernels
