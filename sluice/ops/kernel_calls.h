// Calls of the machine's kernels where it has them (see stablehlo/kernel_library.h): each function kernel_…
// gives an empty value where the operation is left to the compiler.
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

// Where x is a result of kernel_product that nothing else reads, or such a one in other dims: x + other,
// which is a bias [n] or like x. The first of these two may be such an x too, and max(0, x) be made of it.
Value kernel_added(Emit& e, Value x, Value other);
Value kernel_rectified_product(Emit& e, Value x);
// And of one without a bias: x where the gate, which is like x, is above 0 (or a NaN), else 0.
Value kernel_gated_product(Emit& e, Value x, Value gate);

// The sums over `dims`, which are then gone: by a kernel where these are the first ones, else by the
// compiler.
Value sum_over_dims(Emit& e, Value x, const Dims& dims);

// The softmax of x along a dimension or its logarithm, and its gradient from the result's.
Value kernel_softmax(Emit& e, Value x, int64_t dim, bool logarithm);
Value kernel_softmax_gradient(Emit& e, Value grad, Value output, int64_t dim, bool logarithm);

// x Φ(x) with the normal distribution's Φ, and its gradient from the result's.
Value kernel_gelu(Emit& e, Value x);
Value kernel_gelu_gradient(Emit& e, Value grad, Value x);

// Layer normalization over the last dimensions, those of `columns`: its result, and the means and the inverse
// deviations as LibTorch keeps them. weight and bias may be empty. And from the result's
// gradient those of x and, where they are wanted, of weight and bias.
Values kernel_layer_norm(Emit& e, Value x, const Dims& columns, Value weight, Value bias);
Values kernel_layer_norm_gradient(Emit& e, Value grad, Value x, Value mean, Value inverse,
                                  const Dims& columns, Value weight, bool of_parameters);

// softmax(scale q k^T) v and the logarithms of its sums, and the gradients of q, k and v; no values where the
// compiler is to make them.
struct AttentionOperands {
  Value q, k, v;  // [batch, heads, positions, size]
  bool causal = false;
  double scale = 1;
};
Values kernel_attention(Emit& e, const AttentionOperands& in);
Values kernel_attention_gradient(Emit& e, const AttentionOperands& in, Value grad, Value output,
                                 Value logsumexp);

// The windows of a pooling; one entry a spatial dimension.
struct PoolingWindows {
  const Dims &kernel, &stride, &padding, &dilation;
};
// Max pooling of x [N, C, in…] to `out`, and its gradient.
Value kernel_max_pooling(Emit& e, Value x, const Dims& out, const PoolingWindows& windows);
Value kernel_max_pooling_gradient(Emit& e, Value x, Value grad, const PoolingWindows& windows);

}  // namespace sluice::ops
