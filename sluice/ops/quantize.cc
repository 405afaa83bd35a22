// Fake quantization: rounds floats to the numbers that integers with a scale and a zero point represent, and
// computes where the gradient passes (not where a number was clipped).
#include "sluice/base/text/join.h"
#include "sluice/ops/common.h"

namespace sluice::ops {
namespace {

// scale and zero_point have x's dims; x is in its compute type. A zero point that is not an integer is added
// before the number is rounded.
Values quantize(Emit& e, Value x, Value scale, Value zero_point, bool whole_zero_point = true) {
  Builder& b = e.b;
  const int64_t lowest = e.integer("quant_min"), highest = e.integer("quant_max");
  e.check(lowest <= highest,
          base::str("expected quant_min of at most quant_max, found ", lowest, " and ", highest));
  const Value low = b.splat(lowest, x.type()), high = b.splat(highest, x.type());
  const Value inverse = b.divide(number_like(b, 1, x), scale);
  const Value scaled = b.multiply(x, inverse);
  const Value whole =
      whole_zero_point ? b.add(b.round_even(scaled), zero_point) : b.round_even(b.add(scaled, zero_point));
  const Value inside = b.and_(b.compare(whole, low, Compare::kGe), b.compare(whole, high, Compare::kLe));
  // A NaN becomes the lowest number, as in LibTorch's conversion to an integer.
  const Value number = b.select(is_nan(b, whole), low, b.minimum(b.maximum(whole, low), high));
  return {b.multiply(b.subtract(number, zero_point), scale), inside};
}

Value read_self(Emit& e) {
  const Value self = e.tensor("self");
  e.check(stablehlo::is_float(self.dtype()), base::str("expected a float tensor, found ", in_words(self)));
  return to(e.b, self, compute_type(self.dtype()));
}

Values per_tensor(Emit& e) {
  Builder& b = e.b;
  const Value x = read_self(e);
  const int64_t zero_point = e.integer("zero_point");
  e.check(zero_point >= e.integer("quant_min") && zero_point <= e.integer("quant_max"),
          base::str("expected zero_point between quant_min and quant_max, found ", zero_point));
  const Values made = quantize(e, x, e.scalar("scale", x.dtype(), x.dims()), b.splat(zero_point, x.type()));
  return {to(b, made[0], e.tensor("self").dtype()), made[1]};
}

// scale and zero_point are tensors of one element; without fake_quant_enabled, x is returned unchanged.
Values per_tensor_of_tensors(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self"), x = read_self(e);
  const auto one = [&](std::string_view name) {
    const Value given = e.tensor(name);
    e.check(given.type().numel() == 1,
            base::str("expected '", name, "' of one element, found ", in_words(given)));
    return b.reshape(given, {});
  };
  const auto all = [&](std::string_view name) { return b.broadcast(to(b, one(name), x.dtype()), x.dims()); };
  const Values made = quantize(e, x, all("scale"), all("zero_point"));
  const Value enabled = b.not_(is_equal(b, one("fake_quant_enabled"), 0));
  return {b.select(enabled, to(b, made[0], self.dtype()), self),
          b.select(enabled, made[1], b.splat(1, made[1].type()))};
}

// Returns the dimension of x's channels.
int64_t read_axis(Emit& e, Value x) {
  const int64_t axis = e.integer("axis");
  e.check(axis >= 0 && axis < x.rank(),
          base::str("expected an axis from 0 to ", x.rank() - 1, ", found ", axis));
  return axis;
}

Values per_channel(Emit& e) {
  Builder& b = e.b;
  const Value x = read_self(e);
  const int64_t axis = read_axis(e, x);
  const auto along_axis = [&](std::string_view name) {
    const Value given = e.tensor(name);
    e.check(given.dims() == Dims{x.dim(axis)}, base::str("expected '", name, "' with one number for each of ",
                                                         x.dim(axis), " channels, found ", in_words(given)));
    return b.broadcast_in_dim(to(b, given, x.dtype()), x.dims(), {axis});
  };
  const bool whole_zero_point = stablehlo::is_integer(e.tensor("zero_point").dtype());
  const Values made = quantize(e, x, along_axis("scale"), along_axis("zero_point"), whole_zero_point);
  return {to(b, made[0], e.tensor("self").dtype()), made[1]};
}

Values backward(Emit& e) {
  Builder& b = e.b;
  const Value grad = e.tensor("grad"), mask = e.tensor("mask");
  e.check(mask.dtype() == DType::kPred && mask.dims() == grad.dims(),
          base::str("expected a bool mask of the gradient's shape, found ", in_words(mask), " for ",
                    in_words(grad)));
  return {b.multiply(grad, to(b, mask, grad.dtype()))};
}

// Quantization with learnt scale and zero point: f32 tensors with one element, or one for each channel.

void check_learnt(Emit& e, std::string_view name, int64_t size) {
  const Value given = e.tensor(name);
  e.check(stablehlo::is_float(given.dtype()) && given.dims() == Dims{size},
          base::str("expected '", name, "' of ", size, " floats, found ", in_words(given)));
}

// Broadcasts an argument along the channels, or to all elements if there is no axis.
Value spread(Emit& e, std::string_view name, Value x) {
  Builder& b = e.b;
  const Value given = to(b, e.tensor(name), x.dtype());
  if (!e.has("axis")) return b.broadcast(b.reshape(given, {}), x.dims());
  return b.broadcast_in_dim(given, x.dims(), {e.integer("axis")});
}

struct Learnt {
  Value x, scale, zero_point;  // with x's dims; the zero point is not rounded
};
Learnt read_learnt(Emit& e) {
  const Value x = read_self(e);
  const int64_t size = e.has("axis") ? x.dim(read_axis(e, x)) : 1;
  check_learnt(e, "scale", size);
  check_learnt(e, "zero_point", size);
  return {x, spread(e, "scale", x), spread(e, "zero_point", x)};
}

Value between_limits(Emit& e, Value x) {
  return clamp_between(e.b, x, static_cast<double>(e.integer("quant_min")),
                       static_cast<double>(e.integer("quant_max")));
}

Values learnable(Emit& e) {
  const auto [x, scale, zero_point] = read_learnt(e);
  const Value whole = between_limits(e, e.b.round_even(zero_point));
  return {to(e.b, quantize(e, x, scale, whole)[0], e.tensor("self").dtype())};
}

// LSQ+ (Bhalgat et al. 2020): the gradients of x, scale and zero point, the last two times grad_factor.
Values learnable_backward(Emit& e) {
  Builder& b = e.b;
  const auto [x, scale, learnt_zero] = read_learnt(e);
  const Value grad = to(b, e.tensor("grad"), x.dtype());
  e.check(grad.dims() == x.dims(), base::str("expected a gradient of ", in_words(e.tensor("self")),
                                             ", found ", in_words(e.tensor("grad"))));
  e.check(e.integer("quant_min") <= 0 && e.integer("quant_max") >= 0,
          base::str("expected 0 between quant_min and quant_max, found ", e.integer("quant_min"), " and ",
                    e.integer("quant_max")));
  // Without an axis there is one zero point: LibTorch adds 0.5 and drops the fraction here, but rounds in the
  // forward pass.
  const Value zero_point = e.has("axis")
                               ? between_limits(e, b.round_even(learnt_zero))
                               : truncate(b, between_limits(e, b.add(learnt_zero, number_like(b, 0.5, x))));
  const Value inverse = b.divide(number_like(b, 1, x), scale);
  const Value rounded = b.round_even(b.add(zero_point, b.multiply(x, inverse)));
  const Value cut = between_limits(e, rounded), inside = b.compare(rounded, cut, Compare::kEq);
  const Value factor = e.scalar("grad_factor", x.dtype(), x.dims());
  const Value number = b.subtract(cut, zero_point), error = b.subtract(b.multiply(number, scale), x);
  const Value of_scale = b.multiply(
      b.select(inside, b.multiply(b.multiply(grad, error), inverse), b.multiply(grad, number)), factor);
  const Value of_zero =
      b.select(inside, number_like(b, 0, x), b.negate(b.multiply(b.multiply(grad, scale), factor)));
  Dims others;
  for (int64_t dim = 0; dim < x.rank(); ++dim)
    if (!e.has("axis") || dim != e.integer("axis")) others.push_back(dim);
  const auto sum = [&](Value value, std::string_view like) {
    const Value given = e.tensor(like);
    return to(b, b.reshape(b.reduce_sum(value, others), given.dims()), given.dtype());
  };
  return {to(b, b.multiply(grad, to(b, inside, x.dtype())), e.tensor("self").dtype()), sum(of_scale, "scale"),
          sum(of_zero, "zero_point")};
}

constexpr Row kQuantizeRows[] = {
    {.name = "aten::fake_quantize_per_tensor_affine_cachemask", .emit = per_tensor},
    {.name = "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
     .emit = per_tensor_of_tensors},
    {.name = "aten::fake_quantize_per_tensor_affine_cachemask_backward", .emit = backward},
    {.name = "aten::fake_quantize_per_channel_affine_cachemask", .emit = per_channel},
    {.name = "aten::fake_quantize_per_channel_affine_cachemask_backward", .emit = backward},
    {.name = "aten::_fake_quantize_learnable_per_tensor_affine", .emit = learnable},
    {.name = "aten::_fake_quantize_learnable_per_tensor_affine_backward", .emit = learnable_backward},
    {.name = "aten::_fake_quantize_learnable_per_channel_affine", .emit = learnable},
    {.name = "aten::_fake_quantize_learnable_per_channel_affine_backward", .emit = learnable_backward},
};

}  // namespace

std::span<const Row> quantize_rows() { return kQuantizeRows; }

}  // namespace sluice::ops
