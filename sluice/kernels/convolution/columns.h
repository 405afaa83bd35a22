// Convolutions as products of matrices, for shapes that no other algorithm supports. Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/convolution/convolution_kernel.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Makes a kernel for any kind but kBackward. Null if there is no fast product.
std::unique_ptr<ConvolutionKernel> make_columns(const stablehlo::ConvolutionCall& c);

}  // namespace sluice::kernels
