// Matches the composite batch_norm_statistics of an x that is not small.
// Makes "sluice_moments" (stablehlo/kernel_library.h): mean and variance in one pass over x, where XLA needs
// two, and the running statistics if they are f32.
#include "sluice/patterns/calls.h"
#include "sluice/patterns/table.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::patterns {

void batch_norm_statistics(Rewriter& r, const KernelLibrary&) {
  r.each([&](const Operation& op) -> Values {
    if (!op.is_composite(stablehlo::composites::kBatchNormStatistics)) return {};
    if (!all_f32(op.operands) || is_small(op.operands[0])) return {};
    Values operands = {op.operands[0], r.b.splat(op.real("eps"), Type{DType::kF32, {}})};
    if (op.operands[1]) operands.insert(operands.end(), op.operands.begin() + 1, op.operands.end());
    const std::vector<Type> results(op.results.size(), Type{DType::kF32, {op.operands[0].dim(1)}});
    return call_on_activations(r.b, stablehlo::kMomentsTarget, operands, results);
  });
}

}  // namespace sluice::patterns
