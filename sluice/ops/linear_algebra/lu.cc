// LU with partial pivoting; within a block, one column after the other, as in LAPACK's getf2. The pivot is
// the first of the largest elements, and a column of zeros is left unchanged. The size of a complex number is
// |re| + |im| here, as in LAPACK's izamax.
#include <algorithm>

#include "sluice/ops/indexing/indexing.h"
#include "sluice/ops/linear_algebra/matrices.h"

namespace sluice::ops {
namespace {

// The number of columns that are factored one after the other before the rest of the matrix follows.
constexpr int64_t kBlock = 64;

Value size_of(Builder& b, Value x) {
  if (!stablehlo::is_complex(x.dtype())) return b.abs(x);
  return b.add(b.abs(b.real(x)), b.abs(b.imaginary(x)));
}

// Returns the row of the first of the largest elements of a column [batch, rows, 1] from row k on, s32
// [batch, 1, 1]; row k if all are NaN.
Value pivot_row(Builder& b, Value column, Value k) {
  Value rows = row_numbers(b, column), size = size_of(b, column);
  size = b.select(compare_with(b, rows, k, Compare::kGe), size, number_like(b, -1, size));
  const Dims one = {column.dim(0), 1, 1};
  Value largest = b.broadcast(b.reshape(b.reduce_max(size, {1}), one), column.dims());
  Value none = b.splat(column.dim(1), rows.type());
  Value found = b.select(b.compare(size, largest, Compare::kEq), rows, none);
  Value first = b.reshape(b.reduce_min(found, {1}), one);
  return b.select(compare_with(b, first, b.splat(column.dim(1), kNumber), Compare::kEq), b.broadcast(k, one),
                  first);
}

// Returns x with element k along dimension 1 replaced by `value`, [batch, 1].
Value with_element(Builder& b, Value x, Value k, Value value) {
  return b.dynamic_update_slice(x, value, Values{b.splat(0, kNumber), k});
}

// Interchanges row k = first + j with the pivot's row, scales column j below row k, and subtracts from the
// elements to the right and below. State: the columns from `first` on, all pivots, info.
Values eliminate(Builder& b, Value first, Value j, const Values& state) {
  Value a = state[0], pivots = state[1], info = state[2], k = b.add(first, j);
  const int64_t batch = a.dim(0);
  Value rows = row_numbers(b, a), columns = column_numbers(b, a);
  Value pivot = pivot_row(b, column(b, a, j), k);
  Value at_pivot = b.compare(rows, b.broadcast(pivot, a.dims()), Compare::kEq);
  Value upper = b.reshape(b.reduce_sum(where(b, at_pivot, a), {1}), {batch, 1, a.dim(2)});
  Value lower = row(b, a, k);
  a = b.select(at_pivot, b.broadcast(lower, a.dims()), a);
  a = b.select(compare_with(b, rows, k, Compare::kEq), b.broadcast(upper, a.dims()), a);

  Value head = column(b, upper, j);
  Value zero = is_equal(b, head, 0);
  Value below = column(b, a, j);
  Value factors =
      b.select(b.broadcast(zero, below.dims()), below, b.divide(below, b.broadcast(head, below.dims())));
  factors = b.broadcast(factors, a.dims());
  Value rest = b.subtract(a, b.multiply(factors, b.broadcast(upper, a.dims())));
  Value is_below = compare_with(b, rows, k, Compare::kGt);
  Value right = b.and_(is_below, compare_with(b, columns, j, Compare::kGt));
  Value same = b.and_(is_below, compare_with(b, columns, j, Compare::kEq));
  a = b.select(same, factors, b.select(right, rest, a));

  Value number = b.add(k, b.splat(1, kNumber));
  Value one = b.splat(1, Type{DType::kS32, {batch, 1}});
  pivots = with_element(b, pivots, k, b.add(b.reshape(pivot, {batch, 1}), one));
  Value failed = b.and_(is_equal(b, info, 0), b.reshape(zero, {batch}));
  return {a, pivots, b.select(failed, b.broadcast(number, info.dims()), info)};
}

// Returns the order of 0, 1 … after the interchanges of rows first, first + 1 … with the rows of `pivots`.
Value order_of(Builder& b, Value pivots, Value first, int64_t rows, bool undo) {
  const int64_t batch = pivots.dim(0), count = pivots.dim(1);
  Value numbers = positions(b, {batch, rows}, 1), zero = b.splat(0, kNumber);
  const Dims one = {batch, 1};
  return repeat(b, count, {numbers}, [&](Builder& b, Value i, const Values& state) -> Values {
    Value order = state[0];
    Value j = undo ? b.subtract(b.splat(count - 1, kNumber), i) : i, k = b.add(first, j);
    Value other = b.subtract(b.dynamic_slice(pivots, Values{zero, j}, one), b.splat(1, {DType::kS32, one}));
    Value at_other = b.compare(numbers, b.broadcast(other, numbers.dims()), Compare::kEq);
    Value mine = b.broadcast(b.dynamic_slice(order, Values{zero, k}, one), order.dims());
    Value theirs = b.reshape(b.reduce_sum(where(b, at_other, order), {1}), one);
    return {with_element(b, b.select(at_other, mine, order), k, theirs)};
  })[0];
}

// Factors the columns from `first` on by themselves, then updates all others by a triangular system and a
// product (LAPACK's getrf). The state is eliminate's, for the whole matrix.
Values eliminate_block(Builder& b, Value number, const Values& state) {
  Value a = state[0], zero = b.splat(0, kNumber);
  Value first = b.multiply(number, b.splat(kBlock, kNumber)), end = b.add(first, b.splat(kBlock, kNumber));
  const int64_t batch = a.dim(0), rows = a.dim(1);
  Value panel = b.dynamic_slice(a, Values{zero, zero, first}, {batch, rows, kBlock});
  const Values made =
      repeat(b, kBlock, {panel, state[1], state[2]},
             [&](Builder& b, Value j, const Values& in) { return eliminate(b, first, j, in); });
  panel = made[0];
  Value pivots = b.dynamic_slice(made[1], Values{zero, first}, {batch, kBlock});
  a = rows_in_order(b, a, order_of(b, pivots, first, rows, false));
  a = b.dynamic_update_slice(a, panel, Values{zero, zero, first});

  Value strip = b.dynamic_slice(a, Values{zero, first, zero}, {batch, kBlock, a.dim(2)});
  Value square = b.dynamic_slice(panel, Values{zero, first, zero}, {batch, kBlock, kBlock});
  Value right = compare_with(b, column_numbers(b, strip), end, Compare::kGe);
  strip = b.select(right, b.triangular_solve(square, strip, {.unit = true}), strip);
  a = b.dynamic_update_slice(a, strip, Values{zero, first, zero});

  Value rest = b.subtract(a, product(b, panel, strip));
  Value left = b.and_(compare_with(b, row_numbers(b, a), end, Compare::kGe),
                      compare_with(b, column_numbers(b, a), end, Compare::kGe));
  return {b.select(left, rest, a), made[1], made[2]};
}

// Factors the necessary number of blocks. Elements beyond the matrix are zeros, so they do not change the
// matrix's pivots and factors, and their results are dropped.
LuFactors factor_blocks(Builder& b, Value a) {
  const int64_t batch = a.dim(0), rows = a.dim(1), columns = a.dim(2), count = std::min(rows, columns);
  const int64_t blocks = (count + kBlock - 1) / kBlock, more = blocks * kBlock - count;
  Value padded = b.pad(a, b.splat(0, Type{a.dtype(), {}}), {0, 0, 0}, {0, more, more});
  const Values state = {padded, b.splat(0, Type{DType::kS32, {batch, count + more}}),
                        b.splat(0, Type{DType::kS32, {batch}})};
  const Values end = repeat(b, blocks, state, eliminate_block);
  Value beyond = b.compare(end[2], b.splat(count, end[2].type()), Compare::kGt);
  return {b.slice(end[0], {0, 0, 0}, a.dims()), b.slice_dim(end[1], 1, 0, count),
          b.select(beyond, zeros(b, end[2].type()), end[2])};
}

}  // namespace

LuFactors lu_factor(Builder& b, Value a) {
  const int64_t batch = a.dim(0), count = std::min(a.dim(1), a.dim(2));
  if (count > kBlock) return factor_blocks(b, a);
  const Values state = {a, b.splat(0, Type{DType::kS32, {batch, count}}),
                        b.splat(0, Type{DType::kS32, {batch}})};
  const Values end = repeat(b, count, state, [](Builder& b, Value k, const Values& in) {
    return eliminate(b, b.splat(0, kNumber), k, in);
  });
  return {end[0], end[1], end[2]};
}

Value row_order(Builder& b, Value pivots, int64_t rows, bool undo) {
  return order_of(b, pivots, b.splat(0, kNumber), rows, undo);
}

Value lu_solve(Builder& b, Value lu, Value pivots, Value x, bool transpose) {
  const stablehlo::TriangularSystem lower{.unit = true, .transpose = transpose};
  const stablehlo::TriangularSystem upper{.lower = false, .transpose = transpose};
  Value order = row_order(b, pivots, lu.dim(1), transpose);
  if (transpose)
    return rows_in_order(b, b.triangular_solve(lu, b.triangular_solve(lu, x, upper), lower), order);
  return b.triangular_solve(lu, b.triangular_solve(lu, rows_in_order(b, x, order), lower), upper);
}

}  // namespace sluice::ops
