// Margin losses of several classes, and their gradients, computed in f32 for bf16 and f16.
//
// A label outside the classes raises in LibTorch; a compiled program cannot raise, so the loss is NaN.
#include <limits>

#include "sluice/base/text/join.h"
#include "sluice/ops/indexing/indexing.h"
#include "sluice/ops/layers/loss.h"

namespace sluice::ops::loss {
namespace {

// The scores of one call as [samples, classes], in the compute type.
struct Scores {
  int64_t samples = 0, classes = 0;
  Value x;
};

Scores read_scores(Emit& e) {
  const Value self = e.tensor("self");
  e.check(self.rank() <= 2 && stablehlo::is_float(self.dtype()),
          base::str("expected scores of at most 2 dimensions, floats, found ", in_words(self)));
  Scores s;
  s.samples = self.rank() == 2 ? self.dim(0) : 1;
  s.classes = self.rank() == 0 ? 1 : self.dim(self.rank() - 1);
  e.check(s.classes > 0, base::str("expected at least one class, found ", in_words(self)));
  s.x = e.b.reshape(to(e.b, self, compute_type(self.dtype())), {s.samples, s.classes});
  return s;
}

// Reduces losses [samples] as the argument `reduction` says; without reduction, a single sample's loss is 0-d
// if it has no batch dimension.
Value reduced(Emit& e, Value losses, bool batched) {
  Builder& b = e.b;
  const int64_t reduction = e.integer("reduction");
  if (reduction == kNone) return batched ? losses : b.reshape(losses, {});
  const Value sum = b.reduce_sum(losses, {0});
  return reduction == kSum ? sum : b.divide(sum, b.splat(losses.dim(0), sum.type()));
}

// Returns the gradient of each sample's loss, [samples].
Value sample_gradients(Emit& e, const Scores& s) {
  Builder& b = e.b;
  const Value grad = to(b, e.tensor("grad_output"), s.x.dtype());
  if (e.integer("reduction") == kNone) return b.reshape(grad, {s.samples});
  const Value each = b.broadcast(b.reshape(grad, {}), {s.samples});
  return e.integer("reduction") == kMean ? b.divide(each, b.splat(s.samples, each.type())) : each;
}

Value over_classes(Builder& b, const Scores& s, Value of_samples) {
  return b.broadcast_in_dim(of_samples, s.x.dims(), {0});
}

// ---- One class a sample: max(0, margin - x[y] + x[i])^p over all other classes i ----

struct MultiMargin {
  Scores s;
  int64_t p = 1;
  Value label, is_label, known;  // [samples], [samples, classes], [samples]
  Value violation;               // max(0, …), 0 at the label: [samples, classes]
  Value weight;                  // the weight of the label's class, over the number of classes: [samples]
};

MultiMargin read_multi_margin(Emit& e) {
  Builder& b = e.b;
  MultiMargin m;
  m.s = read_scores(e);
  e.check(e.number("p") == 1 || e.number("p") == 2, base::str("expected p of 1 or 2, found ", e.number("p")));
  m.p = static_cast<int64_t>(e.number("p"));
  const Value target = e.tensor("target");
  e.check(target.type().numel() == m.s.samples && stablehlo::is_integer(target.dtype()),
          base::str("expected ", m.s.samples, " integer labels, found ", in_words(target)));
  const Value given = b.reshape(target, {m.s.samples});
  const Value first = zeros(b, given.type()), last = b.splat(m.s.classes - 1, given.type());
  m.known = b.and_(b.compare(given, first, Compare::kGe), b.compare(given, last, Compare::kLe));
  m.label = narrow_index(b, b.minimum(b.maximum(given, first), last), m.s.classes);
  m.is_label = b.compare(positions(b, m.s.x.dims(), 1), over_classes(b, m.s, m.label), Compare::kEq);
  const Value zero = zeros(b, m.s.x.type());
  const Value of_label = over_classes(b, m.s, b.reduce_sum(b.select(m.is_label, m.s.x, zero), {1}));
  const Value margin = e.scalar("margin", zero.dtype(), zero.dims());
  m.violation = b.select(m.is_label, zero, b.maximum(b.add(b.subtract(margin, of_label), m.s.x), zero));
  m.weight = b.splat(1, Type{zero.dtype(), {m.s.samples}});
  if (const Value weight = e.tensor_or_empty("weight")) {
    e.check(weight.type().numel() == m.s.classes,
            base::str("expected a weight for each of ", m.s.classes, " classes, found ", in_words(weight)));
    m.weight = take_along(b, to(b, b.reshape(weight, {m.s.classes}), zero.dtype()), 0, m.label);
  }
  m.weight = b.divide(m.weight, b.splat(m.s.classes, m.weight.type()));
  return m;
}

}  // namespace

Values multi_margin(Emit& e) {
  Builder& b = e.b;
  const MultiMargin m = read_multi_margin(e);
  const Value each = m.p == 1 ? m.violation : b.multiply(m.violation, m.violation);
  Value loss = b.multiply(b.reduce_sum(each, {1}), m.weight);
  loss = b.select(m.known, loss, number_like(b, std::numeric_limits<double>::quiet_NaN(), loss));
  return {to(b, reduced(e, loss, e.tensor("target").rank() > 0), e.tensor("self").dtype())};
}

Values multi_margin_backward(Emit& e) {
  Builder& b = e.b;
  const MultiMargin m = read_multi_margin(e);
  const Value self = e.tensor("self"), zero = zeros(b, m.s.x.type()), one = number_like(b, 1, zero);
  const Value slope = m.p == 1 ? b.select(b.compare(m.violation, zero, Compare::kGt), one, zero)
                               : b.add(m.violation, m.violation);
  const Value factor =
      b.select(m.known, b.multiply(sample_gradients(e, m.s), m.weight), zeros(b, m.weight.type()));
  const Value others = b.multiply(slope, over_classes(b, m.s, factor));
  const Value of_label = over_classes(b, m.s, b.negate(b.reduce_sum(others, {1})));
  return {to(b, b.reshape(b.select(m.is_label, of_label, others), self.dims()), self.dtype())};
}

// ---- Several classes a sample: max(0, 1 - x[y] + x[i]) over its labels y and all other classes i ----

namespace {

// The labels of the samples, listed up to the first negative label.
struct MultiLabel {
  Scores s;
  Value label;      // s32 [samples, labels]
  Value listed;     // predicate, the same
  Value is_target;  // predicate [samples, classes]
};

MultiLabel read_multilabel(Emit& e) {
  Builder& b = e.b;
  MultiLabel m;
  m.s = read_scores(e);
  const Value self = e.tensor("self"), target = e.tensor("target");
  e.check(target.dims() == self.dims() && stablehlo::is_integer(target.dtype()),
          base::str("expected integer labels of the scores' shape, found ", in_words(target), " for ",
                    in_words(self)));
  m.label = b.reshape(narrow_index(b, target, m.s.classes), m.s.x.dims());
  const Values ends = scan(b, {is_less(b, m.label, 0)}, {b.splat(0, Type{DType::kPred, {}})}, 1,
                           [](Builder& body, const Values& earlier, const Values& later) {
                             return Values{body.or_(earlier[0], later[0])};
                           });
  m.listed = b.not_(ends[0]);
  const Value place = b.select(m.listed, m.label, b.splat(m.s.classes, m.label.type()));
  const Type flags{DType::kPred, m.s.x.dims()};
  m.is_target = scatter_elements(b, b.splat(0, flags), 1, place, b.splat(1, flags), replace_by_update());
  return m;
}

// Returns 1 - x[y] + x[i] and whether it counts, [samples, labels, classes].
std::pair<Value, Value> violations(Builder& b, const MultiLabel& m) {
  const Dims dims = {m.s.samples, m.s.classes, m.s.classes};
  const Value of_label = gather_elements(b, m.s.x, 1, m.label);
  const Value z =
      b.add(b.subtract(b.splat(1, Type{m.s.x.dtype(), dims}), b.broadcast_in_dim(of_label, dims, {0, 1})),
            b.broadcast_in_dim(m.s.x, dims, {0, 2}));
  const Value pair = b.and_(b.broadcast_in_dim(m.listed, dims, {0, 1}),
                            b.not_(b.broadcast_in_dim(m.is_target, dims, {0, 2})));
  return {z, b.and_(pair, b.compare(z, zeros(b, z.type()), Compare::kGt))};
}

}  // namespace

Values multilabel_margin(Emit& e) {
  Builder& b = e.b;
  const MultiLabel m = read_multilabel(e);
  const Value self = e.tensor("self"), flags = b.reshape(to(b, m.is_target, self.dtype()), self.dims());
  const auto [z, counts] = violations(b, m);
  Value loss = b.reduce_sum(b.select(counts, z, zeros(b, z.type())), {1, 2});
  loss = b.divide(loss, b.splat(m.s.classes, loss.type()));
  return {to(b, reduced(e, loss, self.rank() == 2), self.dtype()), flags};
}

Values multilabel_margin_backward(Emit& e) {
  Builder& b = e.b;
  const MultiLabel m = read_multilabel(e);
  const Value self = e.tensor("self");
  const auto [z, counts] = violations(b, m);
  const Value ones = to(b, counts, z.dtype());
  const Value of_labels = b.select(m.listed, m.label, b.splat(m.s.classes, m.label.type()));
  const Value grad = scatter_elements(b, b.reduce_sum(ones, {1}), 1, of_labels,
                                      b.negate(b.reduce_sum(ones, {2})), add_update());
  const Value factor = sample_gradients(e, m.s);
  const Value scaled =
      b.multiply(grad, over_classes(b, m.s, b.divide(factor, b.splat(m.s.classes, factor.type()))));
  return {to(b, b.reshape(scaled, self.dims()), self.dtype())};
}

}  // namespace sluice::ops::loss
