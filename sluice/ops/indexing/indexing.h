// Gathers and scatters along dimensions, as the index, pooling, loss and resampling families use them.
//
// All positions are computed as s32; a dimension of 2^31 elements or more is refused. An operation reports a
// position outside its dimension (Emit::expect), because a compiled program cannot stop there: a gather reads
// the nearest element inside, a scatter drops the element.
#pragma once

#include "sluice/ops/common.h"

namespace sluice::ops {

// Returns the positions as s32, for a dimension of this size.
Value narrow_index(Builder& b, Value index, int64_t size);
// Returns the positions, where negative ones count from the end.
Value wrap_index(Builder& b, Value index, int64_t size);
// Returns 0, 1, 2 … along `dim`, as s32.
Value positions(Builder& b, const Dims& dims, int64_t dim);

// Replaces dimension `dim` of x by the dims of `index` (s32): result[…, i…, …] = x[…, index[i…], …].
Value take_along(Builder& b, Value x, int64_t dim, Value index);
// Returns result[…, i, …] = x[…, index[…, i, …], …]; index (s32) has x's rank and in the other dims at most
// x's sizes.
Value gather_elements(Builder& b, Value x, int64_t dim, Value index);
// Does the inverse: returns x with updates[…, i, …] combined into x[…, index[…, i, …], …].
Value scatter_elements(Builder& b, Value x, int64_t dim, Value index, Value updates,
                       const stablehlo::Region& body);
// Returns x with the slices updates[…, i, …] combined into x[…, index[i], …]; index (s32) is one-dimensional.
Value scatter_slices(Builder& b, Value x, int64_t dim, Value index, Value updates,
                     const stablehlo::Region& body);

// Bodies of scatters: body(old, update).
stablehlo::Region add_update();
stablehlo::Region multiply_update();
stablehlo::Region replace_by_update();
stablehlo::Region larger_of_update();
stablehlo::Region smaller_of_update();

}  // namespace sluice::ops
