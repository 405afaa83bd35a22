// Calls of the machine's kernels where it has them (see stablehlo/kernel_library.h): each function gives an
// empty value where the operation is left to the compiler.
#pragma once

#include "sluice/ops/emit.h"

namespace sluice::ops {

// The result of the call's kind; first and second are its operands in their order.
Value kernel_convolution(Emit& e, const stablehlo::ConvolutionCall& call, Value first, Value second);
// Both gradients; no values where the compiler is to make them.
Values kernel_convolution_backward(Emit& e, stablehlo::ConvolutionCall call, Value x, Value w, Value grad);

// a [m, k] b [k, n], or batches of them, [batch, …]. Dims that do not fit are left to the compiler, which
// says so.
Value kernel_product(Emit& e, Value a, Value b);

// Of each channel of x [N, C, …]: mean, biased variance, 1 / sqrt(variance + eps); no values where the
// compiler is to do it. Where `running` is not empty (momentum, running mean and running variance, all f32)
// these two after the batch follow.
Values kernel_moments(Emit& e, Value x, Value eps, const Values& running);
// Σ g and Σ g (x - mean) inverse of each channel; likewise.
Values kernel_channel_sums(Emit& e, Value g, Value x, Value mean, Value inverse);

// The gradient of max pooling of x [N, C, in…]; the lists have one entry a spatial dimension.
Value kernel_max_pooling_gradient(Emit& e, Value x, Value grad, const Dims& kernel, const Dims& stride,
                                  const Dims& padding, const Dims& dilation);

}  // namespace sluice::ops
