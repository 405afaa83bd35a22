#include "sluice/patterns/products/product_call.h"

#include "sluice/stablehlo/kernel_library.h"

namespace sluice::patterns {

using stablehlo::ProductCall;

Value call_product(Builder& b, const Product& product) {
  Values operands = {product.a, product.b};
  CallAttributes attributes = {{"transposed_a", int64_t{product.transposed_a}},
                               {"transposed_b", int64_t{product.transposed_b}}};
  if (product.bias) operands.push_back(product.bias);
  if (product.matrix) operands.push_back(product.matrix);
  if (product.rectified) attributes.push_back({"rectified", int64_t{1}});
  if (product.gated) attributes.push_back({"gated", int64_t{1}});
  return call_on_rows(b, ProductCall::kTarget, operands, {product.result}, attributes)[0];
}

std::optional<Product> product_of(const stablehlo::Rewriter& r, Value v) {
  const Operation* const op = r.call(v, ProductCall::kTarget);
  if (op == nullptr) return {};
  Product found{.a = op->operands[0],
                .b = op->operands[1],
                .bias = {},
                .matrix = {},
                .transposed_a = op->number("transposed_a") != 0,
                .transposed_b = op->number("transposed_b") != 0,
                .rectified = op->number("rectified") != 0,
                .gated = op->number("gated") != 0,
                .result = v.type()};
  for (size_t i = 2; i < op->operands.size(); ++i)
    (op->operands[i].rank() == 1 ? found.bias : found.matrix) = op->operands[i];
  return found;
}

std::optional<Product> product_read_once(const stablehlo::Rewriter& r, Value x) {
  while (r.readers(x) == 1) {
    if (const auto found = product_of(r, x)) return found;
    const Operation* const reshape = r.made_by(x, "stablehlo.reshape");
    if (reshape == nullptr) return {};
    x = reshape->operands[0];
  }
  return {};
}

}  // namespace sluice::patterns
