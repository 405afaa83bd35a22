// A product that makes a weight's gradient, and the weight's update with it, in one call: the gradient is
// used while it is in the caches. Internal to this room.
#pragma once

#include "sluice/kernels/call.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Returns whether one call is faster than the two.
bool has_gemm_update(const stablehlo::ProductCall& call);
// Handles a call of "sluice_product_update".
base::Status call_gemm_update(const Call& call);

}  // namespace sluice::kernels
