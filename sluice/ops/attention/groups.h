// Attention as a loop over groups of heads. All scores at once, [batch, heads, queries, keys] of f32, are
// read from a TPU's memory and written to it several times; the scores of a group stay in its fast memory.
#pragma once

#include <cstdint>

#include "sluice/ops/attention/formula.h"

namespace sluice::ops::attention {

// Returns the results of a composite `attention` or `attention_gradient` (stablehlo/composites.h), computed
// by a loop each of whose rounds makes at most `bytes` bytes of scores at once, in the compute type. Returns
// nothing if all scores are no more than that, and no causal mask hides many of them.
//
// A round takes all heads of some sequences of the batch; if that is too much, some heads of one sequence,
// and at last some queries of one head of keys. (Some heads of all sequences lie far apart in memory: libtpu
// then moved whole tensors in each round.) Batch and heads stay dimensions of their own, so that a layout
// over a mesh may split either. A last group that would be smaller begins earlier instead, and computes some
// heads again.
//
// With a causal mask, a round computes 2,048 and more queries in four blocks, one after the other, each with
// only the keys that its last query sees: 5/8 of the scores. The scores of all four count, because libtpu
// keeps the scores of several blocks.
Values in_groups(Builder& b, const stablehlo::Operation& composite, int64_t bytes);

}  // namespace sluice::ops::attention
