// Convolutions with a window for each channel, for which oneDNN generates no code. Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/convolution/convolution_kernel.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

bool is_depthwise(const stablehlo::ConvolutionCall& c);
// Makes a kernel for any kind but kBackward.
std::unique_ptr<ConvolutionKernel> make_depthwise(const stablehlo::ConvolutionCall& c);

}  // namespace sluice::kernels
