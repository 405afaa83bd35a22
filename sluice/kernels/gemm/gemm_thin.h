// GEMM with a very long M or K and a small other matrix. Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/gemm/gemm.h"

namespace sluice::kernels {

// Returns whether this kernel is faster than the library's.
bool is_thin(const stablehlo::ProductCall& p);
// Makes a kernel; null for other CPUs and shapes.
std::unique_ptr<Gemm> make_thin_gemm(const stablehlo::ProductCall& p);

}  // namespace sluice::kernels
