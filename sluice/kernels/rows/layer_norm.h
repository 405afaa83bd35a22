// Layer normalization of rows, and its gradient. Internal to this room.
//
// Memory is read once: a second read comes from a cache. XLA makes a pass over the tensor for each of the
// sums and one for the result.
#pragma once

#include "sluice/kernels/call.h"

namespace sluice::kernels {

// Computes y = (x - mean) inverse weight + bias, with each row's mean and inverse = 1 / sqrt(variance + eps).
// Sums are of distances from the row's first element and from the mean, so a large mean costs no digits, and
// equal elements give the bias. weight and bias may be null.
struct LayerNorm {
  size_t rows = 0, columns = 0;
  const float *x = nullptr, *weight = nullptr, *bias = nullptr;
  float eps = 0;
  float *y = nullptr, *mean = nullptr, *inverse = nullptr;
};
void layer_norm(const LayerNorm& call);

// Computes grad_x from grad_y, and grad_weight and grad_bias unless they are null. grad_x may be grad_y,
// weight may be null. The sums over rows do not depend on the number of threads.
struct LayerNormGradient {
  size_t rows = 0, columns = 0;
  const float *grad_y = nullptr, *x = nullptr, *mean = nullptr, *inverse = nullptr, *weight = nullptr;
  float *grad_x = nullptr, *grad_weight = nullptr, *grad_bias = nullptr;
};
void layer_norm_gradient(const LayerNormGradient& call);

// Handle the calls of layer normalization.
base::Status call_layer_norm(const Call& call);
base::Status call_layer_norm_gradient(const Call& call);

}  // namespace sluice::kernels
