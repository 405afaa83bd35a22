// Matrix products by oneDNN. Internal to this room.
#pragma once

#include "sluice/pjrt/custom_call.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Whether the library has a fast kernel for this CPU. Makes it. Threads: any.
bool has_product(const stablehlo::ProductCall& call);
// The handler.
base::Status call_product(const pjrt::CustomCall& call);

}  // namespace sluice::kernels
