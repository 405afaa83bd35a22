// Matches a relu of a batch_norm, or of the sum of a batch_norm with a tensor like it (a residual
// connection), which may be a batch_norm too. Makes one call of "sluice_normalize"
// (stablehlo/kernel_library.h): x is read once and neither the normalized tensor nor the sum is in memory.
#include <utility>

#include "sluice/patterns/batch_norm.h"
#include "sluice/patterns/table.h"

namespace sluice::patterns {
namespace {

void append(Rewriter& r, Values& operands, const Operation& batch_norm) {
  const Values own = batch_norm_operands(r.b, batch_norm);
  operands.insert(operands.end(), own.begin(), own.end());
}

}  // namespace

void relu_of_batch_norm(Rewriter& r, const KernelLibrary&) {
  r.each([&](const Operation& op) -> Values {
    if (!op.is_composite(stablehlo::composites::kRelu)) return {};
    const Value x = op.operands[0];
    Values operands;
    if (const Operation* const alone = batch_norm_of(r, x)) {
      append(r, operands, *alone);
    } else if (const Operation* const sum = r.made_by(x, "stablehlo.add")) {
      Value a = sum->operands[0], b = sum->operands[1];
      if (batch_norm_of(r, a) == nullptr) std::swap(a, b);
      const Operation *const first = batch_norm_of(r, a), *const second = batch_norm_of(r, b);
      if (first == nullptr) return {};
      append(r, operands, *first);
      if (second != nullptr)
        append(r, operands, *second);
      else
        operands.push_back(b);
    } else {
      return {};
    }
    return call_on_activations(r.b, stablehlo::kNormalizeTarget, operands, {x.type()});
  });
}

}  // namespace sluice::patterns
