// Linear maps along one dimension whose weights are known when the program is made: interpolation, and
// averages of uneven windows. They are gathers and sums, not matrix products, so that they are exact even if
// products are not (a TPU multiplies f32 matrices in bf16), and an infinity reaches only the elements that
// read it.
#pragma once

#include <vector>

#include "sluice/ops/common.h"

namespace sluice::ops {

struct Tap {
  int64_t position;
  double weight;
};
// For each element of the result a row: the elements that it reads.
using Taps = std::vector<std::vector<Tap>>;

// Returns the adjoint: a row for each of the `inputs` elements that were read.
Taps transposed(const Taps& taps, int64_t inputs);

// Returns result[…, i, …] = sum of weight * x[…, position, …] over taps[i]. x has a compute type.
Value apply_taps(Builder& b, Value x, int64_t dim, const Taps& taps);

// Returns the elements that each of `outputs` windows of adaptive pooling covers, with weight 1.
Taps adaptive_windows(int64_t inputs, int64_t outputs);

}  // namespace sluice::ops
