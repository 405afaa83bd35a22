// Matches the composites gelu and gelu_gradient of an x that is not small.
// Makes "sluice_gelu" and "sluice_gelu_gradient" (stablehlo/kernel_library.h), which compute one exponential
// for distribution and density together.
#include "sluice/patterns/calls.h"
#include "sluice/patterns/table.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::patterns {

void gelu(Rewriter& r, const KernelLibrary&) {
  r.each([&](const Operation& op) -> Values {
    const bool forward = op.is_composite(stablehlo::composites::kGelu);
    if (!forward && !op.is_composite(stablehlo::composites::kGeluGradient)) return {};
    const Value x = op.operands.back();
    if (!all_f32(op.operands) || is_small(x) || op.operands[0].type() != x.type()) return {};
    return call_on_rows(r.b, forward ? stablehlo::kGeluTarget : stablehlo::kGeluGradientTarget, op.operands,
                        {x.type()});
  });
}

}  // namespace sluice::patterns
