// Softmax along the last dimension, its logarithm, and their gradients. Internal to this room.
//
// A row is read from memory once: XLA makes each of its maximum, sum and quotient a pass over the tensor.
#pragma once

#include "sluice/kernels/call.h"

namespace sluice::kernels {

// y = exp(x - max) / Σ exp(x - max) of each row, or the logarithm of it. y may be x. Exponentials are exact
// to 2 units in the last place, 0 where they would be smaller than any normal number.
void softmax(size_t rows, size_t columns, const float* x, bool logarithm, float* y);

// From a gradient of the result y: y (grad_y - Σ grad_y y) of each row, or grad_y - exp(y) Σ grad_y. grad_x
// may be grad_y.
void softmax_gradient(size_t rows, size_t columns, const float* grad_y, const float* y, bool logarithm,
                      float* grad_x);

// The handlers.
base::Status call_softmax(const Call& call);
base::Status call_softmax_gradient(const Call& call);

}  // namespace sluice::kernels
