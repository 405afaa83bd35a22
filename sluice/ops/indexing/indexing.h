// Gathers and scatters along dimensions, as the index, pooling, loss and resampling families use them.
//
// Positions are s32 wherever they are computed; a dimension of 2^31 elements or more is refused. A
// position outside its dimension is reported by what reads it (Emit::expect), for a compiled program cannot
// stop there: a gather reads the nearest element inside, a scatter drops the element.
#pragma once

#include "sluice/ops/common.h"

namespace sluice::ops {

// The positions as s32, for a dimension of this size.
Value narrow_index(Builder& b, Value index, int64_t size);
// Negative positions counted from the end.
Value wrap_index(Builder& b, Value index, int64_t size);
// 0, 1, 2 … along `dim`, as s32.
Value positions(Builder& b, const Dims& dims, int64_t dim);

// x with dimension `dim` replaced by the dims of `index` (s32): result[…, i…, …] = x[…, index[i…], …].
Value take_along(Builder& b, Value x, int64_t dim, Value index);
// result[…, i, …] = x[…, index[…, i, …], …]; index (s32) has x's rank and in the other dims at most x's
// sizes.
Value gather_elements(Builder& b, Value x, int64_t dim, Value index);
// The inverse: x with updates[…, i, …] combined into x[…, index[…, i, …], …].
Value scatter_elements(Builder& b, Value x, int64_t dim, Value index, Value updates,
                       const stablehlo::Region& body);
// x with the slices updates[…, i, …] combined into x[…, index[i], …]; index (s32) is one-dimensional.
Value scatter_slices(Builder& b, Value x, int64_t dim, Value index, Value updates,
                     const stablehlo::Region& body);

// Bodies of scatters: body(old, update).
stablehlo::Region add_update();
stablehlo::Region multiply_update();
stablehlo::Region replace_by_update();
stablehlo::Region larger_of_update();
stablehlo::Region smaller_of_update();

}  // namespace sluice::ops
