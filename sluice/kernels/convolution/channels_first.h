// Reorders activations before and after algorithms that need the channels last. Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/convolution/convolution_kernel.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Wraps `kernel` for activations in the order of their dims.
std::unique_ptr<ConvolutionKernel> make_channels_first(const stablehlo::ConvolutionCall& c,
                                                       std::unique_ptr<ConvolutionKernel> kernel);

}  // namespace sluice::kernels
