// Convolutions with a window for each channel, of activations in the order of their dims. Internal to this
// room.
#pragma once

#include <memory>

#include "sluice/kernels/convolution/convolution_kernel.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Returns whether there is a kernel: with channels_first, for any kind but kBackward.
bool is_depthwise_by_planes(const stablehlo::ConvolutionCall& c);
std::unique_ptr<ConvolutionKernel> make_depthwise_planes(const stablehlo::ConvolutionCall& c);

}  // namespace sluice::kernels
