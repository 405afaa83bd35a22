// Convolutions whose window is one element: a GEMM. Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/convolution/convolution_kernel.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// The GEMM in the order of its operands and result: (x, w) → y, (y, w) → x, (y, x) → w.
stablehlo::ProductCall pointwise_gemm(const stablehlo::ConvolutionCall& c);
// Where there is a kernel for pointwise_gemm. Any kind but kBackward.
std::unique_ptr<ConvolutionKernel> make_pointwise(const stablehlo::ConvolutionCall& c);

}  // namespace sluice::kernels
