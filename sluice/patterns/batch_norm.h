// Finds batch normalization in a program, for the patterns that make calls of it. Internal to this room.
#pragma once

#include "sluice/patterns/calls.h"
#include "sluice/stablehlo/composites.h"
#include "sluice/stablehlo/rewriter.h"

namespace sluice::patterns {

// Returns one number for each channel of x, for a parameter that a model lacks.
inline Value each_channel(Builder& b, double number, Value x) {
  return b.splat(number, Type{DType::kF32, {x.dim(1)}});
}

// Returns the composite batch_norm that made y, if kernels support it; else null.
inline const Operation* batch_norm_of(const stablehlo::Rewriter& r, Value y) {
  const Operation* const op = r.composite(y, stablehlo::composites::kBatchNorm);
  return op != nullptr && all_f32(op->operands) && y.dtype() == DType::kF32 && !is_small(y) ? op : nullptr;
}

// Returns its x, mean, inverse, weight and bias; 1 and 0 for missing parameters.
inline Values batch_norm_operands(Builder& b, const Operation& batch_norm) {
  Values operands = batch_norm.operands;
  if (!operands[3]) operands[3] = each_channel(b, 1, operands[0]);
  if (!operands[4]) operands[4] = each_channel(b, 0, operands[0]);
  return operands;
}

}  // namespace sluice::patterns
