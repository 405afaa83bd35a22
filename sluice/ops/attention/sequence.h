// Attention over a mesh whose axis `sequence` has several devices: each computes the rows of its queries, and
// gets the keys and values of the others in one of two forms.
#pragma once

#include <cstdint>
#include <functional>

#include "sluice/mesh/mesh.h"
#include "sluice/ops/attention/groups.h"
#include "sluice/stablehlo/rewriter.h"

namespace sluice::ops::attention {

// A mask that is computed from numbers of the queries and numbers of the keys, block by block: no device then
// has all of it.
struct BlockMask {
  // [batch or 1, heads or 1, queries or 1, keys or 1], each with one query or one key.
  Values leaves = {};
  // Returns the mask of a block, [batch or 1, heads or 1, queries, keys], from the leaves' blocks.
  std::function<Value(Builder& b, const Values& leaves, int64_t queries, int64_t keys)> make = {};
  bool hides_later = false;  // no query sees a key that comes after it
};

struct Sequence {
  const Mesh* mesh = nullptr;  // null, or one device along `sequence`: attention stays as it is
  // The form is chosen by the bytes of all keys and values of a layer on one device, with their gradients:
  // with no more than this, they are gathered; else they go from device to device.
  int64_t gather_bytes = 0;
};

// Returns the results of a composite `attention` or `attention_gradient` (stablehlo/composites.h), computed
// in a region in which each device works on its blocks (Rewriter::manual). `groups` says how many scores a
// device makes at once. `mask`: how the composite's mask is computed; null: there is no mask, or it is an
// operand, and each device then has the rows of its queries.
//
// The keys come in rounds, one device's keys in each. Gathered, each device reads them from its copy of all
// keys, and the gradients of keys are summed and split at the end. In a ring, keys and values go to the next
// device while a round computes; in the backward pass their gradients follow them. Rounds keep the largest
// score and the sum of each query in f32.
//
// With a causal mask, the first queries see few keys and the last ones all. So each device computes two parts
// that lie mirrored: with four devices 0 and 7, 1 and 6, 2 and 5, 3 and 4. In each round but the first, it
// has the work of two pairs of such parts, without any mask of positions. This needs a length that two times
// the number of devices divides; else each round computes all scores and hides some of them.
//
// Throws kInvalidArgument if the devices do not divide the queries or the keys.
Values over_sequence(stablehlo::Rewriter& r, const stablehlo::Operation& composite, const Groups& groups,
                     const Sequence& sequence, const BlockMask* mask);

}  // namespace sluice::ops::attention
