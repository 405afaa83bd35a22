// Products of a matrix with very many rows or inner places and matrices that are small. Internal to this
// room.
#pragma once

#include <memory>

#include "sluice/kernels/gemm/product.h"

namespace sluice::kernels {

// Whether the kernel here is faster than the library's.
bool is_thin(const stablehlo::ProductCall& p);
// Null where the CPU or the shape does not fit.
std::unique_ptr<ProductKernel> make_thin_product(const stablehlo::ProductCall& p);

}  // namespace sluice::kernels
