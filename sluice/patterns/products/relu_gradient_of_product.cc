// Matches a relu_gradient of a product that nothing else reads: the gradient of a linear layer's input that
// reaches the ReLU in front of the layer.
// Makes the ReLU's operand or result an operand of the call, which writes 0 where that operand is 0 or less.
#include "sluice/patterns/products/product_call.h"
#include "sluice/patterns/table.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::patterns {

void relu_gradient_of_product(Rewriter& r, const KernelLibrary&) {
  r.each([&](const Operation& op) -> Values {
    if (!op.is_composite(stablehlo::composites::kReluGradient)) return {};
    const Value gradient = op.operands[0], gate = op.operands[1];
    auto product = product_read_once(r, gradient);
    if (!product || product->bias || product->matrix || product->result.rank() != 2) return {};
    if (gate.type() != gradient.type()) return {};
    product->matrix = r.b.reshape(gate, product->result.dims);
    product->gated = true;
    return {r.b.reshape(call_product(r.b, *product), gradient.dims())};
  });
}

}  // namespace sluice::patterns
