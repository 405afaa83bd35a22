// GEMM with a very long M or K, whose other matrix is small. Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/gemm/gemm.h"

namespace sluice::kernels {

// Whether the kernel here is faster than the library's.
bool is_thin(const stablehlo::ProductCall& p);
// Null where the CPU or the shape does not fit.
std::unique_ptr<Gemm> make_thin_gemm(const stablehlo::ProductCall& p);

}  // namespace sluice::kernels
