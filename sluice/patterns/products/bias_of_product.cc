// Matches the sum of a product's result, which nothing else reads, and a bias [n] that is the same for each
// row: a linear layer.
// Makes the bias an operand of the call: it is added while a part of the result is in the cache. The result
// may have been reshaped before the sum, for example to [batch, positions, n].
#include <utility>

#include "sluice/patterns/products/product_call.h"
#include "sluice/patterns/table.h"

namespace sluice::patterns {
namespace {

// Returns the value that is broadcast along the last dimension of x. Else empty.
Value bias_along_rows(Rewriter& r, Value x) {
  const Operation* const broadcast = r.made_by(x, "stablehlo.broadcast_in_dim");
  if (broadcast == nullptr || broadcast->attributes.list("broadcast_dimensions") != Dims{x.rank() - 1})
    return {};
  const Value bias = broadcast->operands[0];
  return bias.dim(0) == x.dim(x.rank() - 1) ? bias : Value();
}

}  // namespace

void bias_of_product(Rewriter& r, const KernelLibrary&) {
  r.each([&](const Operation& op) -> Values {
    if (!op.is("stablehlo.add")) return {};
    for (const auto& [x, other] :
         {std::pair(op.operands[0], op.operands[1]), std::pair(op.operands[1], op.operands[0])}) {
      auto product = product_read_once(r, x);
      if (!product || product->bias || product->matrix || product->result.rank() != 2) continue;
      product->bias = bias_along_rows(r, other);
      if (!product->bias || product->bias.dim(0) != product->result.dims[1]) continue;
      return {r.b.reshape(call_product(r.b, *product), x.dims())};
    }
    return {};
  });
}

}  // namespace sluice::patterns
