#include "sluice/ops/linear_algebra/matrices.h"

#include <algorithm>

#include "sluice/ops/indexing/indexing.h"

namespace sluice::ops {

Dims batch_dims(Value x, int64_t inner) { return {x.dims().begin(), x.dims().end() - inner}; }

Value collapse_batch(Builder& b, Value x, int64_t inner) {
  int64_t batch = 1;
  for (int64_t dim : batch_dims(x, inner)) batch *= dim;
  Dims dims = {batch};
  dims.insert(dims.end(), x.dims().end() - inner, x.dims().end());
  return b.reshape(x, dims);
}

Value restore_batch(Builder& b, Value x, const Dims& batch) {
  Dims dims = batch;
  dims.insert(dims.end(), x.dims().begin() + 1, x.dims().end());
  return b.reshape(x, dims);
}

Value row_numbers(Builder& b, Value x) { return positions(b, x.dims(), 1); }
Value column_numbers(Builder& b, Value x) { return positions(b, x.dims(), 2); }

Value compare_with(Builder& b, Value numbers, Value k, Compare direction) {
  return b.compare(numbers, b.broadcast(k, numbers.dims()), direction);
}

Value where(Builder& b, Value predicate, Value x) {
  return b.select(b.broadcast(predicate, x.dims()), x, number_like(b, 0, x));
}

Value column(Builder& b, Value x, Value k) {
  Value zero = b.splat(0, k.type());
  return b.dynamic_slice(x, Values{zero, zero, k}, {x.dim(0), x.dim(1), 1});
}

Value row(Builder& b, Value x, Value k) {
  Value zero = b.splat(0, k.type());
  return b.dynamic_slice(x, Values{zero, k, zero}, {x.dim(0), 1, x.dim(2)});
}

Value upper_triangle(Builder& b, Value x) {
  return where(b, b.compare(row_numbers(b, x), column_numbers(b, x), Compare::kLe), x);
}

Value lower_triangle(Builder& b, Value x, bool unit) {
  Value rows = row_numbers(b, x), columns = column_numbers(b, x);
  if (!unit) return where(b, b.compare(rows, columns, Compare::kGe), x);
  Value below = where(b, b.compare(rows, columns, Compare::kGt), x);
  return b.select(b.compare(rows, columns, Compare::kEq), number_like(b, 1, x), below);
}

Value transposed(Builder& b, Value x) { return b.transpose(x, {0, 2, 1}); }

Value conjugated(Builder& b, Value x) { return stablehlo::is_complex(x.dtype()) ? b.conjugate(x) : x; }
Value adjoint(Builder& b, Value x) { return conjugated(b, transposed(b, x)); }
Value real_part(Builder& b, Value x) { return stablehlo::is_complex(x.dtype()) ? b.real(x) : x; }

Value identity(Builder& b, DType dtype, int64_t batch, int64_t rows, int64_t columns) {
  const Dims dims = {batch, rows, columns};
  return to(b, b.compare(positions(b, dims, 1), positions(b, dims, 2), Compare::kEq), dtype);
}

Value diagonal(Builder& b, Value x) {
  const int64_t size = std::min(x.dim(1), x.dim(2));
  Value square = b.slice(x, {0, 0, 0}, {x.dim(0), size, size});
  Value on = b.compare(row_numbers(b, square), column_numbers(b, square), Compare::kEq);
  return b.reduce_sum(where(b, on, square), {2});
}

Value product(Builder& b, Value left, Value right) {
  const ExactProducts exact(b);
  return b.dot_general(left, right,
                       {.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {1}});
}

Value rows_in_order(Builder& b, Value x, Value order) {
  const Dims dims = {x.dim(0), order.dim(1), x.dim(2)};
  return gather_elements(b, x, 1, b.broadcast_in_dim(order, dims, {0, 1}));
}

Value columns_in_order(Builder& b, Value x, Value order) {
  const Dims dims = {x.dim(0), x.dim(1), order.dim(1)};
  return gather_elements(b, x, 2, b.broadcast_in_dim(order, dims, {0, 2}));
}

}  // namespace sluice::ops
