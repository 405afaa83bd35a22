// Attention by its formulas: softmax(scale q k^T + mask) v, and its gradient, which computes the
// probabilities again from the logarithms of their sums. bf16 and f16 are multiplied directly; scores and all
// sums are f32. With dropout, both passes get the same seeds, and so decide alike.
#pragma once

#include <optional>

#include "sluice/ops/common.h"
#include "sluice/stablehlo/operation.h"

namespace sluice::ops::attention {

struct Operands {
  Value q;          // [batch, heads, queries, size]
  Value k, v;       // [batch, heads of keys, keys, size]; a group of consecutive heads of q shares each
  Value mask = {};  // optional: bool or float, [batch or 1, heads or 1, queries or 1, keys or 1]
  bool causal = false;
  double scale = 1;
  Value seeds = {};  // with dropout: u32 [2, batch, heads, queries]
  Value p = {};      // the probability of dropout, in the compute type
  // The place of the first query among all queries, for `causal`: an s32 without dimensions; empty: 0.
  Value first_query = {};
  // The place of the first key among all keys, for dropout: an s32 without dimensions; empty: 0.
  Value first_key = {};

  stablehlo::CallAttributes attributes() const;
  // Returns the operands of the composites (stablehlo/composites.h), with `before` and `more` around q, k and
  // v.
  Values values(const Values& before = {}, const Values& more = {}) const;
  Dims dims_of_scores() const { return {q.dim(0), q.dim(1), q.dim(2), k.dim(2)}; }
  // The number of consecutive heads of q that share a head of keys.
  int64_t sharing() const { return q.dim(1) / k.dim(1); }
};

// What the gradient reads besides the operands.
struct Given {
  Value grad;       // the gradient of the result
  Value output;     // the result
  Value logsumexp;  // the logarithms of the softmax's sums
};

// A composite `attention` or `attention_gradient` (stablehlo/composites.h), read back.
struct Composite {
  Operands in;
  std::optional<Given> given;  // of a gradient
};
Composite read_composite(const stablehlo::Operation& composite);

// Returns the result, in this type, and the logarithms of the softmax's sums [batch, heads, queries], in the
// compute type.
Values output_of(Builder& b, const Operands& in, DType type);
// Returns the gradients of q, k and v, in this type.
Values gradients_of(Builder& b, const Operands& in, const Given& given, DType type);

}  // namespace sluice::ops::attention
