// softmax and log_softmax along a dimension, and their gradients. Computed in f32 for bf16 and f16.
#include "sluice/ops/common.h"
#include "sluice/ops/fusions.h"
#include "sluice/ops/kernel_calls.h"

namespace sluice::ops {
namespace {

Value spread(Builder& b, Value reduced, Value like, int64_t dim) {
  Dims kept;
  for (int64_t d = 0; d < like.rank(); ++d)
    if (d != dim) kept.push_back(d);
  return b.broadcast_in_dim(reduced, like.dims(), kept);
}

struct Exponentials {
  Value shifted;  // x - max
  Value exp, sum;
};

Exponentials exponentials(Builder& b, Value x, int64_t dim) {
  const Value shifted = b.subtract(x, spread(b, b.reduce_max(x, {dim}, /*nan_wins=*/false), x, dim));
  const Value exp = b.exp(shifted);
  return {shifted, exp, b.reduce_sum(exp, {dim})};
}

struct Input {
  Value x;  // in the compute type, with at least one dimension
  int64_t dim = 0;
  Dims dims;  // of the result
  DType dtype;
};

Input read(Emit& e) {
  const Value self = e.tensor("self");
  const DType compute = compute_type(self.dtype());
  e.check(stablehlo::is_float(self.dtype()), "expected a float tensor; convert it first");
  Value x = to(e.b, self, compute);
  if (x.rank() == 0) x = e.b.reshape(x, {1});
  return {x, wrap_dim(e.integer("dim"), x.rank()), self.dims(),
          e.boolean("half_to_float") ? compute : self.dtype()};
}

Values softmax(Emit& e) {
  const Input in = read(e);
  Value y = kernel_softmax(e, in.x, in.dim, /*logarithm=*/false);
  if (!y) {
    const Exponentials v = exponentials(e.b, in.x, in.dim);
    y = e.b.divide(v.exp, spread(e.b, v.sum, in.x, in.dim));
  }
  return {e.b.reshape(to(e.b, y, in.dtype), in.dims)};
}

Values log_softmax(Emit& e) {
  const Input in = read(e);
  Value y = kernel_softmax(e, in.x, in.dim, /*logarithm=*/true);
  if (!y) {
    const Exponentials v = exponentials(e.b, in.x, in.dim);
    y = e.b.subtract(v.shifted, spread(e.b, e.b.log(v.sum), in.x, in.dim));
  }
  return {e.b.reshape(to(e.b, y, in.dtype), in.dims)};
}

struct Gradient {
  Value grad, output;  // in the compute type, with at least one dimension
  int64_t dim = 0;
};

Gradient read_gradient(Emit& e) {
  Value grad = e.tensor("grad_output"), output = e.tensor("output");
  const DType compute = compute_type(grad.dtype());
  const Dims dims = output.rank() == 0 ? Dims{1} : output.dims();
  return {e.b.reshape(to(e.b, grad, compute), dims), e.b.reshape(to(e.b, output, compute), dims),
          wrap_dim(e.integer("dim"), output.rank())};
}

Values finish(Emit& e, Value result) {
  const DType dtype = e.dtype("input_dtype").value_or(e.tensor("grad_output").dtype());
  return {e.b.reshape(to(e.b, result, dtype), e.tensor("output").dims())};
}

Values softmax_backward(Emit& e) {
  Builder& b = e.b;
  const Gradient g = read_gradient(e);
  if (const Value made = kernel_softmax_gradient(e, g.grad, g.output, g.dim, /*logarithm=*/false))
    return finish(e, made);
  const Value product = b.multiply(g.grad, g.output);
  const Value sum = spread(b, b.reduce_sum(product, {g.dim}), product, g.dim);
  return finish(e, b.subtract(product, b.multiply(g.output, sum)));
}

// The sums over the classes of a gradient that has one number a row, as cross-entropy's. With them nothing of
// it needs to be in memory: the compiler makes it where it is used.
Value sum_at_labels(Emit& e, const Gradient& g) {
  const Fusions* const fusions = e.fusions();
  if (fusions == nullptr || g.dim != 1) return {};
  const auto found = fusions->at_labels.find(g.grad.id());
  return found == fusions->at_labels.end() ? Value{} : found->second;
}

Values log_softmax_backward(Emit& e) {
  Builder& b = e.b;
  const Gradient g = read_gradient(e);
  Value sum = sum_at_labels(e, g);
  if (!sum) {
    if (const Value made = kernel_softmax_gradient(e, g.grad, g.output, g.dim, /*logarithm=*/true))
      return finish(e, made);
    sum = b.reduce_sum(g.grad, {g.dim});
  }
  sum = spread(b, sum, g.grad, g.dim);
  return finish(e, b.subtract(g.grad, b.multiply(b.exp(g.output), sum)));
}

constexpr Row kRows[] = {
    {.name = "aten::_softmax", .emit = softmax},
    {.name = "aten::_softmax_backward_data", .emit = softmax_backward},
    {.name = "aten::_log_softmax", .emit = log_softmax},
    {.name = "aten::_log_softmax_backward_data", .emit = log_softmax_backward},
};

}  // namespace

std::span<const Row> softmax_rows() { return kRows; }

}  // namespace sluice::ops
