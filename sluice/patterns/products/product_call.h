// A call of "sluice_product" in a program, for the patterns that extend it. Internal to this room.
#pragma once

#include <optional>

#include "sluice/patterns/calls.h"
#include "sluice/stablehlo/rewriter.h"

namespace sluice::patterns {

// See ProductCall in stablehlo/kernel_library.h. A missing bias or matrix is empty.
struct Product {
  Value a, b, bias, matrix;
  bool transposed_a = false, transposed_b = false;
  bool rectified = false, gated = false;
  Type result;
};

// Adds the call.
Value call_product(Builder& b, const Product& product);
// Returns the call that made v, if v is a call's result.
std::optional<Product> product_of(const stablehlo::Rewriter& r, Value v);
// Returns the call with the result x, perhaps reshaped, if nothing else reads that result: replacing x
// repeats the product.
std::optional<Product> product_read_once(const stablehlo::Rewriter& r, Value x);

}  // namespace sluice::patterns
