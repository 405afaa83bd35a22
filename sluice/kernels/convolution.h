// Convolutions and their gradients by oneDNN. Internal to this room.
#pragma once

#include "sluice/pjrt/custom_call.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Whether the library has a fast kernel for this CPU. Makes it. Threads: any.
bool has_convolution(const stablehlo::ConvolutionCall& call);
// The handler.
base::Status call_convolution(const pjrt::CustomCall& call);

}  // namespace sluice::kernels
