// Matches the composites softmax and softmax_gradient along the last dimension of an x that is not small.
// Makes "sluice_softmax" and "sluice_softmax_gradient" (stablehlo/kernel_library.h), in place.
#include "sluice/patterns/calls.h"
#include "sluice/patterns/table.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::patterns {

void softmax(Rewriter& r, const KernelLibrary&) {
  r.each([&](const Operation& op) -> Values {
    const bool forward = op.is_composite(stablehlo::composites::kSoftmax);
    if (!forward && !op.is_composite(stablehlo::composites::kSoftmaxGradient)) return {};
    const Value x = op.operands[0];
    if (!all_f32(op.operands) || is_small(x) || op.number("dim") != x.rank() - 1) return {};
    return call_on_rows_in_place(r, forward ? stablehlo::kSoftmaxTarget : stablehlo::kSoftmaxGradientTarget,
                                 op.operands, {}, {{"logarithm", op.number("logarithm")}});
  });
}

}  // namespace sluice::patterns
