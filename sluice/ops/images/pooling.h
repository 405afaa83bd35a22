// Helpers that plain and adaptive pooling share. Pooled ("spatial") dimensions are the last ones of a value;
// all dimensions before them are a batch.
#pragma once

#include "sluice/ops/common.h"
#include "sluice/ops/images/expand_list.h"

namespace sluice::ops::pooling {

// The arguments of one call, with one entry for each spatial dimension.
struct Pool {
  int64_t spatial = 0;
  Dims kernel, stride, padding, dilation;
  Dims in, out;

  // Returns the attributes for composites of pooling.
  stablehlo::CallAttributes attributes() const {
    return {{"kernel", kernel}, {"stride", stride}, {"padding", padding}, {"dilation", dilation}};
  }
};
// Reads and checks the arguments; the default of a missing `dilation` argument is 1.
Pool read_pool(Emit& e);

Dims spatial_sizes(Value x, int64_t spatial);

// Returns the maximum of each window; a NaN wins.
Value window_maximum(Builder& b, Value x, const stablehlo::Window& window);
// Returns the position (s32, row-major in the spatial dims) of each window's maximum, as LibTorch picks it:
// the first of equal maxima, the last NaN.
Value window_argmax(Builder& b, Value x, int64_t spatial, const stablehlo::Window& window);
// The body of reductions over (value, position) that makes this choice.
Values better_of(Builder& b, std::span<const Value> v);
// Adds grad to the positions that it came from: [batch…, out…] -> [batch…, in…] with the dims of `self`.
Value scatter_to_positions(Builder& b, Value grad, Value indices, Value self, int64_t spatial);

// For windows that tile the input (in = out * k): the check, their sums, and the adjoint of the sums.
bool tiles(const Dims& in, const Dims& out);
Value sum_tiles(Builder& b, Value x, const Dims& out);
Value spread_tiles(Builder& b, Value x, const Dims& in);

// Returns x divided by the product of counts[d][i_d] over the spatial dims d.
Value divide_by_counts(Builder& b, Value x, const std::vector<Dims>& counts);

// The gradient of max pooling (pooling_gradient.cc).
Values maximum_gradient(Emit& e);

// Adaptive pooling (pooling_adaptive.cc); the number of spatial dims follows from the operation's name.
Values adaptive_average(Emit& e);
Values adaptive_average_backward(Emit& e);
Values adaptive_maximum(Emit& e);
Values adaptive_maximum_backward(Emit& e);

// The inverse of max pooling, and fractional max pooling (pooling_unpool.cc).
Values unpool(Emit& e);
Values fractional_maximum(Emit& e);
Values fractional_maximum_backward(Emit& e);

// Returns 1, 2 or 3, from the digit before the "d" in the operation's name.
int64_t spatial_count(const Emit& e);

}  // namespace sluice::ops::pooling
