// Convolutions of activations that lie as their dims say, a plane for each channel, as products of matrices.
// Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/convolution/convolution_kernel.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// For any kind but kBackward, with channels_first. Null where there is no fast product.
std::unique_ptr<ConvolutionKernel> make_planes(const stablehlo::ConvolutionCall& c);

}  // namespace sluice::kernels
