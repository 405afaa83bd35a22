// For algorithms that take the channels last: changes the order of activations before and behind them.
// Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/convolution/convolution_kernel.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// `kernel` with activations that lie as their dims say.
std::unique_ptr<ConvolutionKernel> make_channels_first(const stablehlo::ConvolutionCall& c,
                                                       std::unique_ptr<ConvolutionKernel> kernel);

}  // namespace sluice::kernels
