// Matches the sum of a product's result, which nothing else reads, and a tensor like it: a residual
// connection, or the sum of two gradients.
// Makes that tensor an operand of the call: it is added while a part of the result is in the cache.
#include <utility>

#include "sluice/patterns/product_call.h"
#include "sluice/patterns/table.h"

namespace sluice::patterns {

void residual_of_product(Rewriter& r, const KernelLibrary&) {
  r.each([&](const Operation& op) -> Values {
    if (!op.is("stablehlo.add")) return {};
    for (const auto& [x, other] :
         {std::pair(op.operands[0], op.operands[1]), std::pair(op.operands[1], op.operands[0])}) {
      auto product = product_read_once(r, x);
      if (!product || product->matrix || product->rectified || product->result.rank() != 2) continue;
      product->matrix = r.b.reshape(other, product->result.dims);
      return {r.b.reshape(call_product(r.b, *product), x.dims())};
    }
    return {};
  });
}

}  // namespace sluice::patterns
