// Convolutions with a window of one element: a GEMM. Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/convolution/convolution_kernel.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Returns the GEMM in the order of its operands and result: (x, w) → y, (y, w) → x, (y, x) → w.
stablehlo::ProductCall pointwise_gemm(const stablehlo::ConvolutionCall& c);
// Makes a kernel for any kind but kBackward; pointwise_gemm must have a kernel.
std::unique_ptr<ConvolutionKernel> make_pointwise(const stablehlo::ConvolutionCall& c);

}  // namespace sluice::kernels
