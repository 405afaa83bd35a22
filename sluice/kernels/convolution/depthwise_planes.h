// Convolutions with a window for each channel, of activations that lie as their dims say. Internal to this
// room.
#pragma once

#include <memory>

#include "sluice/kernels/convolution/convolution_kernel.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Whether there is one: with channels_first, any kind but kBackward.
bool is_depthwise_by_planes(const stablehlo::ConvolutionCall& c);
std::unique_ptr<ConvolutionKernel> make_depthwise_planes(const stablehlo::ConvolutionCall& c);

}  // namespace sluice::kernels
