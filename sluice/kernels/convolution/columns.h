// Convolutions as products of matrices, for the shapes that no other algorithm takes. Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/convolution/convolution_kernel.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// For any kind but kBackward. Null where there is no fast product.
std::unique_ptr<ConvolutionKernel> make_columns(const stablehlo::ConvolutionCall& c);

}  // namespace sluice::kernels
