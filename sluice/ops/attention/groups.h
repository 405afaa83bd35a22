// Attention as a loop over groups of heads. All scores at once, [batch, heads, queries, keys] of f32, are
// read from a TPU's memory and written to it several times; the scores of a group stay in its fast memory.
#pragma once

#include <cstdint>

#include "sluice/ops/attention/formula.h"

namespace sluice::ops::attention {

// How attention is divided into rounds of a loop.
struct Groups {
  int64_t bytes = 0;  // of scores that a device makes at once, in the compute type; 0: all of them
  // Over how many devices of a mesh the batch and the heads are laid out, in equal parts one after the other.
  int64_t batch_devices = 1, head_devices = 1;
};

// Return the results of attention and of its gradient in this type, computed in a loop as in_groups() says,
// or without one where all scores are few.
Values output_in_groups(Builder& b, const Operands& in, const Groups& groups, DType type);
Values gradients_in_groups(Builder& b, const Operands& in, const Given& given, const Groups& groups,
                           DType type);

// Returns the results of a composite `attention` or `attention_gradient` (stablehlo/composites.h), computed
// by a loop each of whose rounds makes at most `groups.bytes` bytes of scores on a device. Returns nothing if
// all scores are no more than that, and no causal mask hides many of them.
//
// A round takes all heads of some sequences of the batch; if that is too much, some heads of one sequence,
// and at last some queries of one head of keys. (Some heads of all sequences lie far apart in memory: libtpu
// then moved whole tensors in each round.) Over a mesh, a round takes the same part of what each device has:
// no round needs a tensor of another device. For that, batch and heads become two dimensions each, devices ×
// what a device has; a dimension that the devices do not divide stays whole. A last group that would be
// smaller begins earlier instead, and computes some heads again.
//
// With a causal mask, a round computes 2,048 and more queries in four blocks, one after the other, each with
// only the keys that its last query sees: 5/8 of the scores. The scores of all four count, because libtpu
// keeps the scores of several blocks.
Values in_groups(Builder& b, const stablehlo::Operation& composite, const Groups& groups);

}  // namespace sluice::ops::attention
