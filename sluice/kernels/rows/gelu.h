// GELU, x Φ(x) with the normal distribution's Φ, and its gradient. Internal to this room.
//
// XLA's code uses half of an AVX-512 register and divides once for each number.
#pragma once

#include "sluice/kernels/call.h"

namespace sluice::kernels {

// Computes y = x Φ(x). y may be x. The error of Φ is below 2e-7.
void gelu(size_t elements, const float* x, float* y);
// Computes grad_x = grad_y (Φ(x) + x φ(x)), with the density φ. grad_x may be grad_y.
void gelu_gradient(size_t elements, const float* grad_y, const float* x, float* grad_x);

// Handle the calls of GELU.
base::Status call_gelu(const Call& call);
base::Status call_gelu_gradient(const Call& call);

}  // namespace sluice::kernels
