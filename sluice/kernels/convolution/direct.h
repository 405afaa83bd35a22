// Convolutions by oneDNN's direct algorithm. Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/convolution/convolution_kernel.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Makes a kernel for any kind but kBackward. Null if the library has no fast primitive.
std::unique_ptr<ConvolutionKernel> make_direct(const stablehlo::ConvolutionCall& c);

}  // namespace sluice::kernels
