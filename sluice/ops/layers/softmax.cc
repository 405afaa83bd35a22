// softmax and log_softmax along a dimension, and their gradients. Computed in f32 for bf16 and f16.
#include <functional>

#include "sluice/ops/common.h"
#include "sluice/stablehlo/composites.h"

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
  Dims dims;  // the dims of the result
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

// Runs `body` and marks its operations as softmax along dim or its gradient.
Value marked(Builder& b, std::string_view name, const Values& operands, int64_t dim, bool logarithm,
             const std::function<Value()>& body) {
  return b.composite(name, operands, {{"dim", dim}, {"logarithm", int64_t{logarithm}}},
                     [&] { return Values{body()}; })[0];
}

template <bool logarithm>
Values softmax(Emit& e) {
  Builder& b = e.b;
  const Input in = read(e);
  const Value y = marked(b, stablehlo::composites::kSoftmax, {in.x}, in.dim, logarithm, [&] {
    const Exponentials v = exponentials(b, in.x, in.dim);
    return logarithm ? b.subtract(v.shifted, spread(b, b.log(v.sum), in.x, in.dim))
                     : b.divide(v.exp, spread(b, v.sum, in.x, in.dim));
  });
  return {b.reshape(to(b, y, in.dtype), in.dims)};
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

template <bool logarithm>
Values softmax_backward(Emit& e) {
  Builder& b = e.b;
  const Gradient g = read_gradient(e);
  constexpr std::string_view kName = stablehlo::composites::kSoftmaxGradient;
  return finish(e, marked(b, kName, {g.grad, g.output}, g.dim, logarithm, [&] {
                  const Value product = logarithm ? g.grad : b.multiply(g.grad, g.output);
                  const Value sum = spread(b, b.reduce_sum(product, {g.dim}), product, g.dim);
                  return b.subtract(product, b.multiply(logarithm ? b.exp(g.output) : g.output, sum));
                }));
}

constexpr Row kSoftmaxRows[] = {
    {.name = "aten::_softmax", .emit = softmax<false>},
    {.name = "aten::_softmax_backward_data", .emit = softmax_backward<false>},
    {.name = "aten::_log_softmax", .emit = softmax<true>},
    {.name = "aten::_log_softmax_backward_data", .emit = softmax_backward<true>},
};

}  // namespace

std::span<const Row> softmax_rows() { return kSoftmaxRows; }

}  // namespace sluice::ops
