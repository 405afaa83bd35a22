// Loss functions and their gradients, computed in f32 for bf16 and f16.
//
// A class label outside [0, classes) that is not ignore_index raises in LibTorch. A compiled program cannot
// raise, so the loss becomes NaN (the data rooms check labels before that), and the gradient is 0, as for a
// class without a weight.
#include "sluice/ops/layers/loss.h"

#include <limits>

#include "sluice/base/text/join.h"
#include "sluice/ops/indexing/indexing.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::ops {
namespace {

using loss::kMean;
using loss::kNone;
using loss::kSum;

// Reduces the loss of each element as the argument `reduction` says.
Value reduced(Emit& e, Value loss) {
  const int64_t reduction = e.integer("reduction");
  if (reduction == kNone) return loss;
  const Value sum = e.b.reduce_sum(loss, all_dims(loss));
  return reduction == kSum ? sum : e.b.divide(sum, e.b.splat(loss.type().numel(), sum.type()));
}

// ---- Negative log likelihood ----

// The labels of one call: scores [N, C, S] in the compute type and labels [N, S]; S is 1 except for
// nll_loss2d.
struct Labels {
  Value scores;
  Value label;    // s32, inside [0, C)
  Value counted;  // not ignore_index
  Value known;    // a class, or ignored
  Value weight;   // the weight of the label's class, 0 if it is ignored: [N, S], compute type
  bool batched = true, planes = false;
};

Labels read_labels(Emit& e) {
  Builder& b = e.b;
  Labels l;
  const Value self = e.tensor("self");
  l.planes = e.op().find("2d") != std::string_view::npos;
  l.batched = l.planes || self.rank() == 2;
  e.check(l.planes ? self.rank() == 4 : self.rank() == 1 || self.rank() == 2,
          base::str("expected scores of ", l.planes ? "4 dimensions" : "1 or 2 dimensions", ", found ",
                    in_words(self)));
  const int64_t n = l.batched ? self.dim(0) : 1, classes = self.dim(l.batched ? 1 : 0);
  const int64_t positions = l.planes ? self.dim(2) * self.dim(3) : 1;
  const Value target = e.tensor("target");
  e.check(target.type().numel() == n * positions && stablehlo::is_integer(target.dtype()),
          base::str("expected ", n * positions, " integer labels for scores ", in_words(self), ", found ",
                    in_words(target)));
  l.scores = b.reshape(to(b, self, compute_type(self.dtype())), {n, classes, positions});
  const Value label = b.reshape(to(b, target, DType::kS64), {n, positions});
  l.counted = b.compare(label, b.splat(e.integer("ignore_index"), label.type()), Compare::kNe);
  const Value first = b.splat(0, label.type()), last = b.splat(classes - 1, label.type());
  l.known = b.or_(b.not_(l.counted),
                  b.and_(b.compare(label, first, Compare::kGe), b.compare(label, last, Compare::kLe)));
  l.label = narrow_index(b, b.minimum(b.maximum(label, first), last), classes);
  const Type type{l.scores.dtype(), {n, positions}};
  Value weight = b.splat(1, type);
  if (const Value given = e.tensor_or_empty("weight"))
    weight = b.reshape(take_along(b, to(b, given, type.dtype), 0, l.label), type.dims);
  l.weight = b.select(l.counted, weight, zeros(b, type));
  return l;
}

// Returns the score of each label, [N, S]. Rows are gathered, unless a pattern knows better; planes are
// summed over the classes (all but one of the terms are 0), because that fuses with the code that computes
// the scores.
Value picked(Builder& b, const Labels& l) {
  const Dims dims = l.label.dims();
  if (!l.planes) {
    const Value scores = b.reshape(l.scores, {dims[0], l.scores.dim(1)});
    if (scores.type().numel() == 0) return zeros(b, Type{scores.dtype(), dims});
    return b.composite(stablehlo::composites::kLabelScore, {scores, l.label}, {},
                       [&] { return Values{gather_elements(b, scores, 1, l.label)}; })[0];
  }
  const Value is_label = b.compare(positions(b, l.scores.dims(), 1),
                                   b.broadcast_in_dim(l.label, l.scores.dims(), {0, 2}), Compare::kEq);
  return b.reduce_sum(b.select(is_label, l.scores, zeros(b, l.scores.type())), {1});
}

Values nll_loss_forward(Emit& e) {
  Builder& b = e.b;
  const Labels l = read_labels(e);
  e.expect({.argument = "target",
            .values = e.tensor("target"),
            .high = l.scores.dim(1),
            .except = e.integer("ignore_index")});
  const Value self = e.tensor("self"), none = zeros(b, l.weight.type());
  Value loss = b.select(l.counted, b.negate(b.multiply(l.weight, picked(b, l))), none);
  loss = b.select(l.known, loss, number_like(b, std::numeric_limits<double>::quiet_NaN(), loss));
  const int64_t reduction = e.integer("reduction");
  if (reduction == kNone && l.batched)
    return {b.reshape(to(b, loss, self.dtype()), e.tensor("target").dims()),
            zeros(b, Type{self.dtype(), {}})};
  const Value total = b.reduce_sum(l.weight, {0, 1});
  Value sum = b.reduce_sum(loss, {0, 1});
  if (reduction == kMean) sum = b.divide(sum, total);
  return {to(b, sum, self.dtype()), to(b, total, self.dtype())};
}

Values nll_loss_backward(Emit& e) {
  Builder& b = e.b;
  const Labels l = read_labels(e);
  const Value self = e.tensor("self");
  const Type type = l.weight.type();
  Value grad = to(b, e.tensor("grad_output"), type.dtype);
  if (e.integer("reduction") == kMean) grad = b.divide(grad, to(b, e.tensor("total_weight"), type.dtype));
  grad = grad.type().numel() == type.numel() ? b.reshape(grad, type.dims)
                                             : b.broadcast(b.reshape(grad, {}), type.dims);
  // Ignored labels get exactly 0, even if the total weight is 0.
  grad = b.select(b.and_(l.counted, l.known), b.negate(b.multiply(grad, l.weight)), zeros(b, type));
  const Dims& dims = l.scores.dims();
  return b.composite(stablehlo::composites::kNllGradient, {grad}, {}, [&] {
    const Value is_label =
        b.compare(positions(b, dims, 1), b.broadcast_in_dim(l.label, dims, {0, 2}), Compare::kEq);
    const Value result =
        b.select(is_label, b.broadcast_in_dim(grad, dims, {0, 2}), zeros(b, l.scores.type()));
    return Values{b.reshape(to(b, result, self.dtype()), self.dims())};
  });
}

// ---- Losses of two tensors ----

// A loss of each element: the arguments in the compute type, broadcast together.
using Pointwise = Value (*)(Emit& e, Value self, Value target);

template <Pointwise kLoss>
Values pair_loss(Emit& e) {
  const DType dtype = e.promote({"self", "target"});
  const Values v = operands(e, compute_type(dtype), {"self", "target"});
  return {to(e.b, reduced(e, kLoss(e, v[0], v[1])), dtype)};
}

// Returns grad_output times the loss's derivative by `self`; for the mean, divided by the number of elements.
template <Pointwise derivative>
Values pair_loss_backward(Emit& e) {
  Builder& b = e.b;
  const DType dtype = e.promote({"self", "target"});
  const Values v = operands(e, compute_type(dtype), {"self", "target", "grad_output"});
  Value grad = b.multiply(v[2], derivative(e, v[0], v[1]));
  if (e.integer("reduction") == kMean)
    grad = b.divide(grad, b.splat(e.tensor("self").type().numel(), grad.type()));
  return {to(b, grad, dtype)};
}

Value squared_error(Emit& e, Value self, Value target) {
  const Value difference = e.b.subtract(self, target);
  return e.b.multiply(difference, difference);
}

Value squared_error_derivative(Emit& e, Value self, Value target) {
  const Value difference = e.b.subtract(self, target);
  return e.b.add(difference, difference);
}

// Smooth L1: z² / (2 beta) below beta, z - beta / 2 from there on.
Value smooth_l1(Emit& e, Value self, Value target) {
  Builder& b = e.b;
  const Value z = b.abs(b.subtract(self, target)), half = number_like(b, 0.5, z);
  const Value beta = e.scalar("beta", z.dtype(), z.dims());
  return b.select(b.compare(z, beta, Compare::kLt), b.divide(b.multiply(b.multiply(half, z), z), beta),
                  b.subtract(z, b.multiply(half, beta)));
}

Value smooth_l1_derivative(Emit& e, Value self, Value target) {
  Builder& b = e.b;
  const Value x = b.subtract(self, target);
  const Value beta = e.scalar("beta", x.dtype(), x.dims());
  return b.select(b.compare(b.abs(x), beta, Compare::kLt), b.divide(x, beta), b.sign(x));
}

// Huber: z² / 2 up to delta, delta * (z - delta / 2) above.
Value huber(Emit& e, Value self, Value target) {
  Builder& b = e.b;
  const Value z = b.abs(b.subtract(self, target)), half = number_like(b, 0.5, z);
  const Value delta = e.scalar("delta", z.dtype(), z.dims());
  return b.select(b.compare(z, delta, Compare::kLe), b.multiply(b.multiply(half, z), z),
                  b.multiply(delta, b.subtract(z, b.multiply(half, delta))));
}

Value huber_derivative(Emit& e, Value self, Value target) {
  Builder& b = e.b;
  const Value x = b.subtract(self, target);
  const Value delta = e.scalar("delta", x.dtype(), x.dims());
  return b.select(b.compare(b.abs(x), delta, Compare::kLe), x, b.multiply(delta, b.sign(x)));
}

Value times_weight(Emit& e, Value x) {
  const Value weight = e.tensor_or_empty("weight");
  return weight ? e.b.multiply(x, e.b.broadcast(to(e.b, weight, x.dtype()), x.dims())) : x;
}

// Logarithms are cut at -100, so that a probability of exactly 0 gives a finite loss.
Value binary_cross_entropy(Emit& e, Value self, Value target) {
  Builder& b = e.b;
  const Value one = number_like(b, 1, self), least = number_like(b, -100, self);
  const Value log_no = b.maximum(b.log1p(b.negate(self)), least), log_yes = b.maximum(b.log(self), least);
  return times_weight(e,
                      b.subtract(b.multiply(b.subtract(target, one), log_no), b.multiply(target, log_yes)));
}

Value binary_cross_entropy_derivative(Emit& e, Value self, Value target) {
  Builder& b = e.b;
  const Value spread = b.multiply(b.subtract(number_like(b, 1, self), self), self);
  const Value slope = b.divide(b.subtract(self, target), b.maximum(spread, number_like(b, 1e-12F, self)));
  return times_weight(e, slope);
}

constexpr Row kLossRows[] = {
    {.name = "aten::nll_loss_forward", .emit = nll_loss_forward},
    {.name = "aten::nll_loss_backward", .emit = nll_loss_backward},
    {.name = "aten::nll_loss2d_forward", .emit = nll_loss_forward},
    {.name = "aten::nll_loss2d_backward", .emit = nll_loss_backward},
    {.name = "aten::mse_loss", .emit = pair_loss<squared_error>},
    {.name = "aten::mse_loss_backward", .emit = pair_loss_backward<squared_error_derivative>},
    {.name = "aten::smooth_l1_loss", .emit = pair_loss<smooth_l1>},
    {.name = "aten::smooth_l1_loss_backward", .emit = pair_loss_backward<smooth_l1_derivative>},
    {.name = "aten::huber_loss", .emit = pair_loss<huber>},
    {.name = "aten::huber_loss_backward", .emit = pair_loss_backward<huber_derivative>},
    {.name = "aten::binary_cross_entropy", .emit = pair_loss<binary_cross_entropy>},
    {.name = "aten::binary_cross_entropy_backward",
     .emit = pair_loss_backward<binary_cross_entropy_derivative>},
    {.name = "aten::multi_margin_loss", .emit = loss::multi_margin, .constants = "p"},
    {.name = "aten::multi_margin_loss_backward", .emit = loss::multi_margin_backward, .constants = "p"},
    {.name = "aten::multilabel_margin_loss_forward", .emit = loss::multilabel_margin},
    {.name = "aten::multilabel_margin_loss_backward", .emit = loss::multilabel_margin_backward},
    {.name = "aten::_ctc_loss", .emit = loss::ctc},
    {.name = "aten::_ctc_loss.Tensor", .emit = loss::ctc},
    {.name = "aten::_ctc_loss_backward", .emit = loss::ctc_backward},
    {.name = "aten::_ctc_loss_backward.Tensor", .emit = loss::ctc_backward},
};

}  // namespace

std::span<const Row> loss_rows() { return kLossRows; }

}  // namespace sluice::ops
