// Matches a relu of a product with a bias (bias_of_product) that nothing else reads: a linear layer and the
// activation after it.
// Makes the ReLU an attribute of the call: it is applied while a part of the result is in the cache.
#include "sluice/patterns/products/product_call.h"
#include "sluice/patterns/table.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::patterns {

void relu_of_product(Rewriter& r, const KernelLibrary&) {
  r.each([&](const Operation& op) -> Values {
    if (!op.is_composite(stablehlo::composites::kRelu)) return {};
    auto product = product_read_once(r, op.operands[0]);
    if (!product || !product->bias || product->matrix || product->rectified) return {};
    product->rectified = true;
    return {r.b.reshape(call_product(r.b, *product), op.results[0].dims())};
  });
}

}  // namespace sluice::patterns
