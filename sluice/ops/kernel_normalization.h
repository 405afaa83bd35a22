// Batch normalization by the machine's kernels where it has them (see stablehlo/kernel_library.h): each
// function gives an empty value where the compiler is to do it.
//
// A kernel does more than one operation: a ReLU of what was normalized, of a residual sum with it, and the
// gradient of both. Operations are emitted one after the other, so each notes what its result is (Fusions),
// and the last of them makes a call from what the notes say. What is then read by nobody the compiler drops.
#pragma once

#include "sluice/ops/emit.h"
#include "sluice/ops/fusions.h"

namespace sluice::ops {

// Of each channel of x [N, C, …]: mean, biased variance, 1 / sqrt(variance + eps). Where `running` is not
// empty (momentum, running mean and running variance, all f32) these two after the batch follow.
Values kernel_moments(Emit& e, Value x, Value eps, const Values& running);

// y = normalized. The parameters that are empty count as 1 and 0.
void note_normalized(Emit& e, Value y, Normalized normalized);
// sum = a + b
void note_sum(Emit& e, Value sum, Value a, Value b);
// max(0, x) where x is noted as normalized, or as a sum with what is.
Value kernel_rectified(Emit& e, Value x);
// result = gradient where rectified > 0, else 0
void note_gated(Emit& e, Value result, Value gradient, Value rectified);

// The gradient that reaches a normalization of x.
struct NormalizationGradient {
  Value g, x, mean, inverse;
  Value weight, bias;  // empty unless a gate follows from what was normalized: g is the one before it
};
// `grad` is the gradient itself.
NormalizationGradient ungated(Emit& e, Value grad, Value x, Value mean, Value inverse);
// Σ g and Σ g (x - mean) inverse of each channel.
Values kernel_channel_sums(Emit& e, const NormalizationGradient& of);
// x's gradient, from the means of g and g (x - mean) inverse of each channel. An empty weight counts as 1.
Value kernel_normalization_gradient(Emit& e, const NormalizationGradient& of, Value weight, Value mean_g,
                                    Value mean_product);

}  // namespace sluice::ops
