// Convolutions with a window for each channel, where oneDNN generates no code. Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/convolution/convolution_kernel.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

bool is_depthwise(const stablehlo::ConvolutionCall& c);
// For any kind but kBackward.
std::unique_ptr<ConvolutionKernel> make_depthwise(const stablehlo::ConvolutionCall& c);

}  // namespace sluice::kernels
