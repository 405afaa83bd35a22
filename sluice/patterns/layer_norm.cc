// Matches the composites layer_norm and layer_norm_gradient of an x that is not small.
// Makes "sluice_layer_norm" and "sluice_layer_norm_gradient" (stablehlo/kernel_library.h), which read x once.
// The gradient is not made in place: XLA would copy it before the call.
#include <algorithm>

#include "sluice/patterns/calls.h"
#include "sluice/patterns/table.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::patterns {
namespace {

namespace composites = stablehlo::composites;

// Returns whether the parameter is missing, or is f32 with these dims.
bool fits(Value parameter, const Dims& dims) {
  return !parameter || parameter.type() == Type{DType::kF32, dims};
}

// Returns the type of a value that layer normalization keeps: one number for each row of x.
Type type_of_rows(Value x, const Dims& columns) {
  Dims dims = x.dims();
  std::fill(dims.end() - static_cast<int64_t>(columns.size()), dims.end(), 1);
  return {DType::kF32, dims};
}

Values forward(Rewriter& r, const Operation& op) {
  const Value x = op.operands[0], weight = op.operands[1], bias = op.operands[2];
  const Dims& columns = op.ints("columns");
  if (!all_f32(op.operands) || is_small(x) || !fits(weight, columns) || !fits(bias, columns)) return {};
  Values operands = {x, r.b.splat(op.real("eps"), Type{DType::kF32, {}})};
  if (weight || bias) operands.push_back(weight ? weight : r.b.splat(1, Type{DType::kF32, columns}));
  if (bias) operands.push_back(bias);
  const Type of_rows = type_of_rows(x, columns);
  return call_on_rows(r.b, stablehlo::kLayerNormTarget, operands, {x.type(), of_rows, of_rows});
}

Values gradient(Rewriter& r, const Operation& op) {
  const Value grad = op.operands[0], x = op.operands[1], weight = op.operands[4];
  const Dims& columns = op.ints("columns");
  if (!all_f32({grad, x}) || is_small(x) || !fits(weight, columns)) return {};
  for (size_t of_rows : {2, 3})
    if (op.operands[of_rows].type() != type_of_rows(x, columns)) return {};
  Values operands(op.operands.begin(), op.operands.begin() + 4);
  if (weight) operands.push_back(weight);
  std::vector<Type> results = {x.type()};
  const bool of_weight = op.number("weight") != 0, of_bias = op.number("bias") != 0;
  if (of_weight || of_bias) results.insert(results.end(), 2, {DType::kF32, columns});
  Values made = call_on_rows(r.b, stablehlo::kLayerNormGradientTarget, operands, results);
  if (of_weight != of_bias) made.erase(made.begin() + (of_weight ? 2 : 1));
  return made;
}

}  // namespace

void layer_norm(Rewriter& r, const KernelLibrary&) {
  r.each([&](const Operation& op) -> Values {
    if (op.is_composite(composites::kLayerNorm)) return forward(r, op);
    if (op.is_composite(composites::kLayerNormGradient)) return gradient(r, op);
    return {};
  });
  // A gradient that is left to the compiler contains sums of rows, which another pattern matches.
  r.open(composites::kLayerNormGradient);
}

}  // namespace sluice::patterns
