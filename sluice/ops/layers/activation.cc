// Activation functions and their gradients. bf16 and f16 are computed in f32.
#include <cmath>
#include <numbers>

#include "sluice/base/text/join.h"
#include "sluice/ops/random.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::ops {
namespace {

namespace composites = stablehlo::composites;

// The arguments of an activation, in the type in which it is computed, and the type of its result.
struct Operands {
  Builder& b;
  DType dtype;
  Values v;
  Value zero, one;

  Value number(double x) const { return number_like(b, x, v[0]); }
  // Returns a number argument of the operation as a tensor.
  Value argument(Emit& e, std::string_view name) const { return e.scalar(name, v[0].dtype(), v[0].dims()); }
  Values result(Value x) const { return {to(b, x, dtype)}; }
  Value times(Value x, double factor) const { return b.multiply(x, number(factor)); }
  Value plus(Value x, double term) const { return b.add(x, number(term)); }
};

Operands prepare(Emit& e, std::initializer_list<std::string_view> names) {
  const DType dtype = e.promote(names);
  Values v = operands(e, compute_type(dtype), names);
  Value zero = number_like(e.b, 0, v[0]), one = number_like(e.b, 1, v[0]);
  return {e.b, dtype, std::move(v), zero, one};
}

Value compared(const Operands& o, Value x, Compare direction, Value y) {
  return o.b.compare(x, y, direction);
}

// ---- piecewise linear ----

Values relu(Emit& e) {
  Value x = e.tensor("self");
  return e.b.composite(composites::kRelu, {x}, {},
                       [&] { return Values{e.b.maximum(x, number_like(e.b, 0, x))}; });
}

Values threshold(Emit& e) {
  const Operands o = prepare(e, {"self"});
  Value below = compared(o, o.v[0], Compare::kLe, o.argument(e, "threshold"));
  return o.result(o.b.select(below, o.argument(e, "value"), o.v[0]));
}

Values threshold_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "self"});
  const auto gradient = [&] {
    const Value below = compared(o, o.v[1], Compare::kLe, o.argument(e, "threshold"));
    return Values{o.b.select(below, o.zero, o.v[0])};
  };
  const bool of_relu = e.is_constant("threshold", 0);
  return o.result((of_relu ? o.b.composite(composites::kReluGradient, o.v, {}, gradient) : gradient())[0]);
}

Values hardtanh(Emit& e) {
  const Operands o = prepare(e, {"self"});
  return o.result(o.b.minimum(o.b.maximum(o.v[0], o.argument(e, "min_val")), o.argument(e, "max_val")));
}

Values hardtanh_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "self"});
  Value low = compared(o, o.v[1], Compare::kLe, o.argument(e, "min_val"));
  Value high = compared(o, o.v[1], Compare::kGe, o.argument(e, "max_val"));
  return o.result(o.b.select(o.b.or_(low, high), o.zero, o.v[0]));
}

Values leaky_relu(Emit& e) {
  const Operands o = prepare(e, {"self"});
  Value positive = compared(o, o.v[0], Compare::kGt, o.zero);
  return o.result(o.b.select(positive, o.v[0], o.b.multiply(o.v[0], o.argument(e, "negative_slope"))));
}

Values leaky_relu_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "self"});
  Value positive = compared(o, o.v[1], Compare::kGt, o.zero);
  return o.result(o.b.select(positive, o.v[0], o.b.multiply(o.v[0], o.argument(e, "negative_slope"))));
}

Values prelu(Emit& e) {
  const Operands o = prepare(e, {"self", "weight"});
  Value positive = compared(o, o.v[0], Compare::kGt, o.zero);
  return o.result(o.b.select(positive, o.v[0], o.b.multiply(o.v[0], o.v[1])));
}

Values prelu_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "self", "weight"});
  Value positive = compared(o, o.v[1], Compare::kGt, o.zero);
  Value grad_self = o.b.select(positive, o.v[0], o.b.multiply(o.v[0], o.v[2]));
  Value grad_weight = o.b.select(positive, o.zero, o.b.multiply(o.v[0], o.v[1]));
  return {to(o.b, grad_self, o.dtype), to(o.b, grad_weight, o.dtype)};
}

Values hardsigmoid(Emit& e) {
  const Operands o = prepare(e, {"self"});
  return o.result(o.b.divide(clamp_between(o.b, o.plus(o.v[0], 3), 0, 6), o.number(6)));
}

Values hardsigmoid_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "self"});
  Value inside = is_less(o.b, o.b.abs(o.v[1]), 3);
  return o.result(o.b.select(inside, o.b.divide(o.v[0], o.number(6)), o.zero));
}

Values hardswish(Emit& e) {
  const Operands o = prepare(e, {"self"});
  Value gate = clamp_between(o.b, o.plus(o.v[0], 3), 0, 6);
  return o.result(o.b.divide(o.b.multiply(o.v[0], gate), o.number(6)));
}

Values hardswish_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "self"});
  Value slope = o.plus(o.b.divide(o.v[1], o.number(3)), 0.5);
  Value middle = o.b.select(is_less(o.b, o.v[1], 3), o.b.multiply(o.v[0], slope), o.v[0]);
  return o.result(o.b.select(compared(o, o.v[1], Compare::kLe, o.number(-3)), o.zero, middle));
}

// Returns true for elements between -lambd and lambd.
Value inside_of_lambd(Emit& e, const Operands& o, Value x) {
  Value lambd = o.argument(e, "lambd");
  return o.b.and_(compared(o, x, Compare::kGe, o.b.negate(lambd)), compared(o, x, Compare::kLe, lambd));
}

Values softshrink(Emit& e) {
  const Operands o = prepare(e, {"self"});
  Value lambd = o.argument(e, "lambd");
  Value shrunk = o.b.select(is_less(o.b, o.v[0], 0), o.b.add(o.v[0], lambd), o.b.subtract(o.v[0], lambd));
  // A 0 keeps the sign of the operand.
  return o.result(o.b.select(inside_of_lambd(e, o, o.v[0]), o.b.multiply(o.v[0], o.zero), shrunk));
}

Values hardshrink(Emit& e) {
  const Operands o = prepare(e, {"self"});
  return o.result(o.b.select(inside_of_lambd(e, o, o.v[0]), o.zero, o.v[0]));
}

Values softshrink_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "self"});
  return o.result(o.b.select(inside_of_lambd(e, o, o.v[1]), o.zero, o.v[0]));
}

Values hardshrink_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_out", "self"});
  return o.result(o.b.select(inside_of_lambd(e, o, o.v[1]), o.zero, o.v[0]));
}

// Training: multiplies each element that is not above 0 by a random slope, which is kept in `noise`.
Values rrelu(Emit& e) {
  const Operands o = prepare(e, {"self"});
  const double lower = e.number("lower"), upper = e.number("upper");
  e.check(lower <= upper,
          base::str("expected a lower bound of at most the upper bound, found ", lower, " and ", upper));
  const Value x = o.v[0], positive = compared(o, x, Compare::kGt, o.zero);
  const DType noise = e.tensor("noise").dtype();
  if (!e.boolean("training"))
    return {to(o.b, o.b.select(positive, x, o.times(x, (lower + upper) / 2)), o.dtype), Value()};
  const Value drawn = o.plus(o.times(Source(e).uniform(x.dtype(), x.dims()), upper - lower), lower);
  const Value slope = o.b.select(compared(o, x, Compare::kLe, o.zero), drawn, o.one);
  return {to(o.b, o.b.multiply(x, slope), o.dtype), to(o.b, slope, noise)};
}

// ---- exponential ----

Values elu(Emit& e) {
  const Operands o = prepare(e, {"self"});
  Value scale = o.argument(e, "scale");
  Value curve = o.b.expm1(o.b.multiply(o.v[0], o.argument(e, "input_scale")));
  Value negative = o.b.multiply(curve, o.b.multiply(o.argument(e, "alpha"), scale));
  return o.result(o.b.select(is_less(o.b, o.v[0], 0), negative, o.b.multiply(o.v[0], scale)));
}

Values elu_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "self_or_result"});
  Value grad = o.v[0], x = o.v[1];
  Value scale = o.argument(e, "scale"), input_scale = o.argument(e, "input_scale");
  Value coefficient = o.b.multiply(o.argument(e, "alpha"), scale);
  Value slope = e.boolean("is_result") ? o.b.multiply(input_scale, o.b.add(x, coefficient))
                                       : o.b.multiply(o.b.multiply(input_scale, coefficient),
                                                      o.b.exp(o.b.multiply(x, input_scale)));
  Value negative = compared(o, x, Compare::kLe, o.zero);
  return o.result(o.b.multiply(grad, o.b.select(negative, slope, scale)));
}

Values sigmoid_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "output"});
  Value y = o.b.conjugate(o.v[1]);
  return o.result(o.b.multiply(o.b.multiply(o.v[0], o.b.subtract(o.one, y)), y));
}

Values tanh_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "output"});
  Value y = o.b.conjugate(o.v[1]);
  return o.result(o.b.multiply(o.v[0], o.b.subtract(o.one, o.b.multiply(y, y))));
}

Values logit_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "self"});
  const double eps = e.has("eps") ? e.number("eps") : -1;
  const double low = eps < 0 ? 0 : eps, outside = eps < 0 ? NAN : 0;
  Value x = o.v[1];
  Value inside =
      o.b.and_(compared(o, x, Compare::kGe, o.number(low)), compared(o, x, Compare::kLe, o.number(1 - low)));
  Value slope = o.b.divide(o.v[0], o.b.multiply(x, o.b.subtract(o.one, x)));
  return o.result(o.b.select(inside, slope, o.number(outside)));
}

Values silu(Emit& e) {
  const Operands o = prepare(e, {"self"});
  return o.result(o.b.multiply(o.v[0], o.b.logistic(o.v[0])));
}

Values silu_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "self"});
  Value s = o.b.logistic(o.v[1]);
  Value slope = o.b.multiply(s, o.plus(o.b.multiply(o.v[1], o.b.subtract(o.one, s)), 1));
  return o.result(o.b.multiply(o.v[0], slope));
}

// Returns log(1 + exp(x)) without overflow.
Value log1p_exp(const Operands& o, Value x) {
  return o.b.add(o.b.maximum(x, o.zero), o.b.log1p(o.b.exp(o.b.negate(o.b.abs(x)))));
}

Values mish(Emit& e) {
  const Operands o = prepare(e, {"self"});
  return o.result(o.b.multiply(o.v[0], o.b.tanh(log1p_exp(o, o.v[0]))));
}

Values mish_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "self"});
  Value x = o.v[1], t = o.b.tanh(log1p_exp(o, x));
  Value bend = o.b.multiply(o.b.multiply(x, o.b.logistic(x)), o.b.subtract(o.one, o.b.multiply(t, t)));
  return o.result(o.b.multiply(o.v[0], o.b.add(t, bend)));
}

Values softplus(Emit& e) {
  const Operands o = prepare(e, {"self"});
  Value beta = o.argument(e, "beta"), scaled = o.b.multiply(o.v[0], beta);
  Value linear = compared(o, scaled, Compare::kGt, o.argument(e, "threshold"));
  return o.result(o.b.select(linear, o.v[0], o.b.divide(log1p_exp(o, scaled), beta)));
}

Values softplus_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "self"});
  Value scaled = o.b.multiply(o.v[1], o.argument(e, "beta"));
  Value linear = compared(o, scaled, Compare::kGt, o.argument(e, "threshold"));
  return o.result(o.b.select(linear, o.v[0], o.b.multiply(o.v[0], o.b.logistic(scaled))));
}

// The second result is the buffer that PyTorch's CPU keeps for the gradient; this gradient does not need it.
Values log_sigmoid_forward(Emit& e) {
  const Operands o = prepare(e, {"self"});
  Value kept = o.b.exp(o.b.negate(o.b.abs(o.v[0])));
  Value result = o.b.subtract(o.b.minimum(o.v[0], o.zero), o.b.log1p(kept));
  return {to(o.b, result, o.dtype), to(o.b, kept, o.dtype)};
}

Values log_sigmoid_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "self"});
  return o.result(o.b.multiply(o.v[0], o.b.logistic(o.b.negate(o.v[1]))));
}

// ---- GELU ----

constexpr double kGeluCubic = 0.044715;
const double kGeluTanhScale = std::sqrt(2 / std::numbers::pi);

// Returns tanh's argument in the approximation.
Value gelu_inner(const Operands& o, Value x) {
  Value cube = o.b.multiply(o.b.multiply(x, x), x);
  return o.times(o.b.add(x, o.times(cube, kGeluCubic)), kGeluTanhScale);
}

bool gelu_by_tanh(Emit& e) {
  const std::string_view approximate = e.text("approximate");
  e.check(approximate == "none" || approximate == "tanh", "expected approximate to be \"none\" or \"tanh\"");
  return approximate == "tanh";
}

Values gelu(Emit& e) {
  const Operands o = prepare(e, {"self"});
  Value x = o.v[0];
  const bool by_tanh = gelu_by_tanh(e);
  const auto value = [&] {
    Value gate = by_tanh ? o.b.tanh(gelu_inner(o, x)) : erf(o.b, o.times(x, std::numbers::sqrt2 / 2));
    return Values{o.b.multiply(o.times(x, 0.5), o.plus(gate, 1))};
  };
  return o.result((by_tanh ? value() : o.b.composite(composites::kGelu, {e.tensor("self")}, {}, value))[0]);
}

Values gelu_backward(Emit& e) {
  const Operands o = prepare(e, {"grad_output", "self"});
  Builder& b = o.b;
  Value x = o.v[1], square = b.multiply(x, x);
  if (gelu_by_tanh(e)) {
    Value t = b.tanh(gelu_inner(o, x));
    Value inner_slope = o.times(o.plus(o.times(square, 3 * kGeluCubic), 1), kGeluTanhScale);
    Value bend = b.multiply(b.multiply(o.times(x, 0.5), b.subtract(o.one, b.multiply(t, t))), inner_slope);
    return o.result(b.multiply(o.v[0], b.add(o.times(o.plus(t, 1), 0.5), bend)));
  }
  const auto gradient = [&] {
    Value cdf = o.times(o.plus(erf(b, o.times(x, std::numbers::sqrt2 / 2)), 1), 0.5);
    Value pdf = o.times(b.exp(o.times(square, -0.5)), 1 / std::sqrt(2 * std::numbers::pi));
    return Values{b.multiply(o.v[0], b.add(cdf, b.multiply(x, pdf)))};
  };
  return o.result(
      b.composite(composites::kGeluGradient, {e.tensor("grad_output"), e.tensor("self")}, {}, gradient)[0]);
}

// ---- gated linear unit ----

// Returns the two halves of `self` along its dimension `dim`.
std::pair<Value, Value> halves(Emit& e, Value x, int64_t dim) {
  e.check(x.rank() > 0, "expected at least one dimension, found a 0-d tensor");
  const int64_t size = x.dim(dim);
  e.check(size % 2 == 0, "expected an even size in the dimension that is halved; pad the tensor");
  return {e.b.slice_dim(x, dim, 0, size / 2), e.b.slice_dim(x, dim, size / 2, size)};
}

Values glu(Emit& e) {
  Value x = e.operand("self", compute_type(e.tensor("self").dtype()));
  const auto [value, gate] = halves(e, x, wrap_dim(e.integer("dim"), x.rank()));
  return {to(e.b, e.b.multiply(value, e.b.logistic(gate)), e.tensor("self").dtype())};
}

Values glu_backward(Emit& e) {
  Builder& b = e.b;
  const DType dtype = e.tensor("self").dtype();
  Value x = e.operand("self", compute_type(dtype)), grad = e.operand("grad_output", compute_type(dtype));
  const int64_t dim = wrap_dim(e.integer("dim"), x.rank());
  const auto [value, gate] = halves(e, x, dim);
  Value s = b.logistic(gate);
  Value grad_value = b.multiply(grad, s);
  Value grad_gate = b.multiply(b.multiply(grad_value, b.subtract(number_like(b, 1, s), s)), value);
  const Value parts[] = {grad_value, grad_gate};
  return {to(b, b.concatenate(parts, dim), dtype)};
}

const Row kActivationRows[] = {
    {.name = "aten::elu", .emit = elu},
    {.name = "aten::elu_backward", .emit = elu_backward},
    {.name = "aten::gelu", .emit = gelu},
    {.name = "aten::gelu_backward", .emit = gelu_backward},
    {.name = "aten::glu", .emit = glu},
    {.name = "aten::glu_backward", .emit = glu_backward},
    {.name = "aten::hardshrink", .emit = hardshrink},
    {.name = "aten::hardshrink_backward", .emit = hardshrink_backward},
    {.name = "aten::hardsigmoid", .emit = hardsigmoid},
    {.name = "aten::hardsigmoid_backward", .emit = hardsigmoid_backward},
    {.name = "aten::hardswish", .emit = hardswish},
    {.name = "aten::hardswish_backward", .emit = hardswish_backward},
    {.name = "aten::hardtanh", .emit = hardtanh},
    {.name = "aten::hardtanh_backward", .emit = hardtanh_backward},
    {.name = "aten::leaky_relu", .emit = leaky_relu},
    {.name = "aten::leaky_relu_backward", .emit = leaky_relu_backward},
    {.name = "aten::log_sigmoid_backward", .emit = log_sigmoid_backward},
    {.name = "aten::log_sigmoid_forward", .emit = log_sigmoid_forward},
    {.name = "aten::logit_backward", .emit = logit_backward, .constants = "eps"},
    {.name = "aten::mish", .emit = mish},
    {.name = "aten::mish_backward", .emit = mish_backward},
    {.name = "aten::_prelu_kernel", .emit = prelu},
    {.name = "aten::_prelu_kernel_backward", .emit = prelu_backward},
    {.name = "aten::relu", .emit = relu},
    {.name = "aten::rrelu_with_noise",
     .emit = rrelu,
     .constants = "lower upper",
     .writes = "noise",
     .random = true},
    {.name = "aten::sigmoid_backward", .emit = sigmoid_backward},
    {.name = "aten::silu", .emit = silu},
    {.name = "aten::silu_backward", .emit = silu_backward},
    {.name = "aten::softplus", .emit = softplus},
    {.name = "aten::softplus_backward", .emit = softplus_backward},
    {.name = "aten::softshrink", .emit = softshrink},
    {.name = "aten::softshrink_backward", .emit = softshrink_backward},
    {.name = "aten::tanh_backward", .emit = tanh_backward},
    {.name = "aten::threshold", .emit = threshold, .constant_if_zero = "threshold value"},
    {.name = "aten::threshold_backward", .emit = threshold_backward, .constant_if_zero = "threshold"},
};

}  // namespace

std::span<const Row> activation_rows() { return kActivationRows; }

}  // namespace sluice::ops
