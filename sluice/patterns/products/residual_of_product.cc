// Matches the sum of a product's result, which nothing else reads, and a tensor of the same shape: a residual
// connection, or the sum of two gradients.
// Makes that tensor an operand of the call: it is added while a part of the result is in the cache. Leaves
// the sum alone if the compiler can compute the tensor as it adds it, from fewer elements or from a multiple:
// a call would need it in memory.
#include <utility>

#include "sluice/patterns/products/product_call.h"
#include "sluice/patterns/table.h"

namespace sluice::patterns {

namespace {

bool is_broadcast(const Rewriter& r, Value v) {
  return r.made_by(v, "stablehlo.broadcast_in_dim") != nullptr ||
         r.made_by(v, "stablehlo.constant") != nullptr;
}

bool is_made_where_it_is_added(const Rewriter& r, Value v) {
  if (is_broadcast(r, v)) return true;
  const Operation* const multiple = r.made_by(v, "stablehlo.multiply");
  return multiple != nullptr &&
         (is_broadcast(r, multiple->operands[0]) || is_broadcast(r, multiple->operands[1]));
}

}  // namespace

void residual_of_product(Rewriter& r, const KernelLibrary&) {
  r.each([&](const Operation& op) -> Values {
    if (!op.is("stablehlo.add")) return {};
    for (const auto& [x, other] :
         {std::pair(op.operands[0], op.operands[1]), std::pair(op.operands[1], op.operands[0])}) {
      auto product = product_read_once(r, x);
      if (!product || product->matrix || product->rectified || product->result.rank() != 2) continue;
      if (is_made_where_it_is_added(r, other)) continue;
      product->matrix = r.b.reshape(other, product->result.dims);
      return {r.b.reshape(call_product(r.b, *product), x.dims())};
    }
    return {};
  });
}

}  // namespace sluice::patterns
