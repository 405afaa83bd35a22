// Matches the gradient of log_softmax(x), along the classes, of the gradient of nll_loss: the gradient of
// cross-entropy. A row of nll_loss's gradient has one number, which is also its sum over the classes. The
// pattern uses that number as the sum, and the compiler makes the gradient where it is used, without ever
// storing it whole. For every target.
//
// label_scores, for targets without kernels, matches each row's score of its label and makes a sum over the
// classes, in which all terms but one are 0. A gather would make the compiler store the scores in the type
// that the loss computes in, next to the scores of the product in bf16; the sum reads these.
#include "sluice/patterns/calls.h"
#include "sluice/patterns/table.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::patterns {

namespace composites = stablehlo::composites;

void cross_entropy_gradient(Rewriter& r) {
  r.each([&](const Operation& op) -> Values {
    if (!op.is_composite(composites::kSoftmaxGradient) || op.number("logarithm") != 1 ||
        op.number("dim") != 1)
      return {};
    const Value grad = op.operands[0], output = op.operands[1];
    const Operation* const loss = r.composite(grad, composites::kNllGradient);
    if (loss == nullptr || grad.rank() != 2 || loss->operands[0].dtype() != grad.dtype()) return {};
    Builder& b = r.b;
    const Value of_rows = b.reshape(loss->operands[0], {grad.dim(0)});
    const Value sum = b.broadcast_in_dim(of_rows, grad.dims(), {0});
    return {b.subtract(grad, b.multiply(b.exp(output), sum))};
  });
}

void label_scores(Rewriter& r) {
  r.each([&](const Operation& op) -> Values {
    if (!op.is_composite(composites::kLabelScore)) return {};
    const Value scores = op.operands[0], label = op.operands[1];
    Builder& b = r.b;
    const Value classes = b.iota({label.dtype(), scores.dims()}, 1);
    const Value is_label =
        b.compare(classes, b.broadcast_in_dim(label, scores.dims(), {0, 1}), stablehlo::Compare::kEq);
    const Value only = b.select(is_label, scores, b.splat(0, scores.type()));
    return {b.reshape(b.reduce_sum(only, {1}), label.dims())};
  });
}

}  // namespace sluice::patterns
