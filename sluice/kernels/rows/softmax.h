// Softmax along the last dimension, its logarithm, and their gradients. Internal to this room.
//
// A row is read from memory once: XLA makes a pass over the tensor for each of maximum, sum and quotient.
#pragma once

#include "sluice/kernels/call.h"

namespace sluice::kernels {

// Computes y = exp(x - max) / Σ exp(x - max) of each row, or its logarithm. y may be x. Exponentials are
// exact to 2 units in the last place, and 0 if they would be smaller than any normal number.
void softmax(size_t rows, size_t columns, const float* x, bool logarithm, float* y);

// Computes the gradient of x from the gradient of the result y: y (grad_y - Σ grad_y y) of each row, or with
// `logarithm` grad_y - exp(y) Σ grad_y. grad_x may be grad_y.
void softmax_gradient(size_t rows, size_t columns, const float* grad_y, const float* y, bool logarithm,
                      float* grad_x);

// Handle the calls of softmax.
base::Status call_softmax(const Call& call);
base::Status call_softmax_gradient(const Call& call);

}  // namespace sluice::kernels
