// A call of "sluice_product" in a program, for the patterns that add to it. Internal to this room.
#pragma once

#include <optional>

#include "sluice/patterns/calls.h"
#include "sluice/stablehlo/rewriter.h"

namespace sluice::patterns {

// See ProductCall in stablehlo/kernel_library.h. bias and matrix are empty where there is none.
struct Product {
  Value a, b, bias, matrix;
  bool transposed_a = false, transposed_b = false;
  bool rectified = false, gated = false;
  Type result;
};

// Adds the call.
Value call_product(Builder& b, const Product& product);
// The call that made v, if one did.
std::optional<Product> product_of(const stablehlo::Rewriter& r, Value v);
// The call whose result x is, perhaps in other dims, where nothing else reads it: what takes its place
// multiplies once more.
std::optional<Product> product_read_once(const stablehlo::Rewriter& r, Value x);

}  // namespace sluice::patterns
