// Matches the composites max_pooling and max_pooling_gradient of a batch.
// Makes "sluice_max_pooling" and "sluice_max_pooling_gradient" (stablehlo/kernel_library.h); XLA's code for a
// CPU visits each window's elements one after the other.
#include "sluice/patterns/calls.h"
#include "sluice/patterns/table.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::patterns {

namespace composites = stablehlo::composites;

void max_pooling(Rewriter& r, const KernelLibrary&) {
  r.each([&](const Operation& op) -> Values {
    const bool forward = op.is_composite(composites::kMaxPooling);
    if (!forward && !op.is_composite(composites::kMaxPoolingGradient)) return {};
    const Value x = op.operands[0];
    const bool batched = x.rank() == static_cast<int64_t>(op.ints("kernel").size()) + 2;
    if (!batched || !all_f32(op.operands) || is_small(x)) return {};
    return call_on_activations(r.b,
                               forward ? stablehlo::kMaxPoolingTarget : stablehlo::kMaxPoolingGradientTarget,
                               op.operands, {op.results[0].type()}, op.call);
  });
}

}  // namespace sluice::patterns
