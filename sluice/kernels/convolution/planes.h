// Convolutions of activations in the order of their dims, a plane for each channel, as products of matrices.
// Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/convolution/convolution_kernel.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Makes a kernel for any kind but kBackward, with channels_first. Null if there is no fast product.
std::unique_ptr<ConvolutionKernel> make_planes(const stablehlo::ConvolutionCall& c);

}  // namespace sluice::kernels
