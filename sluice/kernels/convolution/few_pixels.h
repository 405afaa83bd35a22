// Convolutions of images so small that nearly every window sees nearly all of its image. Internal to this
// room.
//
// One GEMM. A row of x holds all pixels of an image, as they are in memory, and so does a row of y. The
// matrix between them, [y's pixels, filters, x's pixels, channels], has a block for each pair of pixels: the
// tap of the window that connects them, or zeros.
#pragma once

#include <cstddef>
#include <memory>

#include "sluice/kernels/convolution/convolution_kernel.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Returns the product of the spatial dims.
size_t spatial_size(const stablehlo::Dims& dims);
// Counts the pairs of a pixel of x and one of y that no tap connects.
size_t unconnected_pixels(const stablehlo::ConvolutionCall& c);
// Returns the GEMM in the order of its operands and result: (x, matrix) → y, (y, matrix) → x, (y, x) →
// matrix.
stablehlo::ProductCall few_pixels_gemm(const stablehlo::ConvolutionCall& c);
// Makes a kernel without groups for any kind but kBackward; few_pixels_gemm must have a kernel.
std::unique_ptr<ConvolutionKernel> make_few_pixels(const stablehlo::ConvolutionCall& c);

}  // namespace sluice::kernels
