// Max pooling and its gradient. Internal to this room.
#pragma once

#include "sluice/kernels/call.h"

namespace sluice::kernels {

// Each list has one entry for each spatial dimension.
struct Pooling {
  stablehlo::Dims in, out, kernel, stride, padding, dilation;
};

// Writes the maximum of each window; a NaN counts as the maximum. x: batch × in… × channels, y: batch × out…
// × channels, dense.
void max_pooling(const Pooling& pooling, size_t batch, size_t channels, const float* x, float* y);

// Writes x's gradient: each window's gradient goes to the first of its equal maxima, or to its last NaN, or,
// if nothing in it is above -inf, to its first place that is no padding. x and grad_x: batch × in… ×
// channels, grad_y: batch × out… × channels, dense.
void max_pooling_gradient(const Pooling& pooling, size_t batch, size_t channels, const float* x,
                          const float* grad_y, float* grad_x);

// Handle the calls of pooling.
base::Status call_max_pooling(const Call& call);
base::Status call_max_pooling_gradient(const Call& call);

}  // namespace sluice::kernels
