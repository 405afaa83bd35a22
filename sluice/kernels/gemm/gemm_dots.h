// Products of few long rows with other long rows. Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/gemm/gemm.h"

namespace sluice::kernels {

// Makes a kernel for c = a b if b is transposed and a or b^T has few rows. Such is the weights' gradient of a
// convolution with few channels or filters, which is a sum over all pixels. Null for other products and CPUs.
std::unique_ptr<Gemm> make_dot_gemm(const stablehlo::ProductCall& p);

}  // namespace sluice::kernels
