// Eigenvalues and singular values by Jacobi's rotations. The columns form two halves. A round rotates column
// i of the left half with column i of the right half, all pairs at once, and then moves all columns by one
// place. After a sweep of n - 1 rounds, each column has met every other one, and all are back where they
// began (the round robin of Brent and Luk, "The solution of singular-value and symmetric eigenvalue problems
// on multiprocessor arrays", 1985). A rotation of complex columns is a real rotation, after the second column
// was multiplied by a number of size 1 that makes the element between the two real and positive.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sluice/ops/indexing/indexing.h"
#include "sluice/ops/linear_algebra/matrices.h"

namespace sluice::ops {
namespace {

constexpr int64_t kMaxSweeps = 30;  // as in LAPACK's gesvj; 6 to 10 are common
const Type kFlag{DType::kPred, {}};

double epsilon(DType dtype) {
  return stablehlo::real_dtype(dtype) == DType::kF64
             ? std::numeric_limits<double>::epsilon()
             : static_cast<double>(std::numeric_limits<float>::epsilon());
}

struct Halves {
  Value first, second;
};
Halves halves(Builder& b, Value x, int64_t dim) {
  const int64_t half = x.dim(dim) / 2;
  return {b.slice_dim(x, dim, 0, half), b.slice_dim(x, dim, half, 2 * half)};
}

Value joined(Builder& b, const Values& parts, int64_t dim) { return b.concatenate(parts, dim); }

// Arranges the next round's pairs: all but the first column move by one place, around both halves.
Value moved_on(Builder& b, Value x, int64_t dim) {
  const int64_t size = x.dim(dim), half = size / 2;
  if (half == 1) return x;
  auto part = [&](int64_t from, int64_t end) { return b.slice_dim(x, dim, from, end); };
  return joined(
      b, {part(0, 1), part(half, half + 1), part(1, half - 1), part(half + 1, size), part(half - 1, half)},
      dim);
}

// The rotation that makes `between` zero in the symmetric matrices [[first, between], [between, second]]
// (Golub and Van Loan, "Matrix Computations", 8.5.2). In Hermitian matrices, `between` is the complex number
// at the upper right, and the second column is first multiplied by `phase`, which is empty for real numbers.
struct Rotation {
  Value c, s, phase;
};
Rotation rotation(Builder& b, Value first, Value second, Value between) {
  Value phase;
  if (stablehlo::is_complex(between.dtype())) {
    Value size = b.abs(between), zero = is_equal(b, size, 0);
    Value unit =
        b.divide(b.conjugate(between), to(b, b.select(zero, number_like(b, 1, size), size), between.dtype()));
    phase = b.select(zero, number_like(b, 1, unit), unit);
    between = size;
  }
  Value one = number_like(b, 1, between);
  Value zeta = b.divide(b.subtract(second, first), b.multiply(number_like(b, 2, between), between));
  Value root = b.sqrt(b.add(one, b.multiply(zeta, zeta)));
  Value size = b.divide(one, b.add(b.abs(zeta), root));
  Value t = b.select(is_less(b, zeta, 0), b.negate(size), size);
  t = b.select(is_equal(b, between, 0), number_like(b, 0, t), t);
  Value c = b.rsqrt(b.add(one, b.multiply(t, t)));
  return {c, b.multiply(c, t), phase};
}

// Rotates the pairs of columns (dim 2) or rows (dim 1); c and s are [batch, pairs].
Value rotated(Builder& b, Value x, const Rotation& by, int64_t dim) {
  Halves h = halves(b, x, dim);
  auto times = [&](Value factor, Value part) {
    return b.multiply(b.broadcast_in_dim(to(b, factor, x.dtype()), part.dims(), {0, dim}), part);
  };
  if (by.phase) h.second = times(dim == 2 ? by.phase : b.conjugate(by.phase), h.second);
  return joined(b,
                {b.subtract(times(by.c, h.first), times(by.s, h.second)),
                 b.add(times(by.s, h.first), times(by.c, h.second))},
                dim);
}

// Repeats sweep(state) until there is nothing left to do. sweep returns the new state and, last, a flag for
// another sweep.
Values sweeps(Builder& b, const Values& state, const std::function<Values(Builder&, const Values&)>& sweep) {
  Values init = {b.splat(0, kNumber), b.splat(1, kFlag)};
  init.insert(init.end(), state.begin(), state.end());
  const Values end = b.while_(
      init,
      [](Builder& b, std::span<const Value> in) {
        Value some_left = b.compare(in[0], b.splat(kMaxSweeps, kNumber), Compare::kLt);
        return Values{b.and_(some_left, in[1])};
      },
      [&](Builder& b, std::span<const Value> in) {
        Values next = sweep(b, Values(in.begin() + 2, in.end()));
        Values all = {b.add(in[0], b.splat(1, kNumber)), next.back()};
        all.insert(all.end(), next.begin(), next.end() - 1);
        return all;
      });
  return {end.begin() + 2, end.end()};
}

// x divided by its largest element, and that element ([batch, 1, 1]; 1 for a matrix of zeros), so that
// squares of elements neither overflow nor vanish.
struct Scaled {
  Value value, scale;
};
Scaled scaled(Builder& b, Value x) {
  Value largest = b.reshape(b.reduce_max(b.abs(x), {1, 2}), {x.dim(0), 1, 1});
  Value scale = b.select(is_equal(b, largest, 0), number_like(b, 1, largest), largest);
  return {b.divide(x, to(b, b.broadcast(scale, x.dims()), x.dtype())), scale};
}

// Returns the sum of |x|² over these dimensions, real.
Value sum_of_squares(Builder& b, Value x, const Dims& dims) {
  return b.reduce_sum(real_part(b, b.multiply(conjugated(b, x), x)), dims);
}

// Adds rows and columns of zeros at the end.
Value with_zeros(Builder& b, Value x, int64_t rows, int64_t columns) {
  return b.pad(x, b.splat(0, Type{x.dtype(), {}}), {0, 0, 0}, {0, rows, columns});
}

// Does a round of the eigenvalue problem: state {a, vectors}.
Values eigen_round(Builder& b, const Values& state) {
  Value a = state[0], vectors = state[1];
  const int64_t half = a.dim(1) / 2;
  const Halves rows = halves(b, a, 1);
  const Halves top = halves(b, rows.first, 2), bottom = halves(b, rows.second, 2);
  const Rotation by = rotation(b, real_part(b, diagonal(b, top.first)),
                               real_part(b, diagonal(b, bottom.second)), diagonal(b, top.second));
  a = rotated(b, rotated(b, a, by, 2), by, 1);
  // The eliminated elements are set to exactly zero, without the rounding error.
  Value distance = b.abs(b.subtract(row_numbers(b, a), column_numbers(b, a)));
  a = where(b, b.compare(distance, b.splat(half, distance.type()), Compare::kNe), a);
  vectors = rotated(b, vectors, by, 2);
  return {moved_on(b, moved_on(b, a, 1), 2), moved_on(b, vectors, 2)};
}

Value any_above(Builder& b, Value x, Value limit) {
  return b.reduce_or(b.compare(x, limit, Compare::kGt), {0});
}

// Returns the position of each element, [batch, count], after sorting.
Value sorted_order(Builder& b, Value values, bool descending) {
  const Value operands[] = {values, positions(b, values.dims(), 1)};
  return b.sort(operands, 1, true, [&](Builder& b, std::span<const Value> in) -> Values {
    return {b.compare(in[0], in[1], descending ? Compare::kGt : Compare::kLt)};
  })[1];
}

Value elements_in_order(Builder& b, Value values, Value order) {
  return gather_elements(b, values, 1, order);
}

// Does a round of the singular value problem: state {columns of a over columns of V, whether any pair was
// rotated}. The first `rows` rows of the columns are a's.
Values singular_round(Builder& b, const Values& state, int64_t rows, double tolerance) {
  const Halves part = halves(b, b.slice_dim(state[0], 1, 0, rows), 2);
  Value first = sum_of_squares(b, part.first, {1}), second = sum_of_squares(b, part.second, {1});
  Value between = b.reduce_sum(b.multiply(conjugated(b, part.first), part.second), {1});
  Value sizes = b.multiply(b.sqrt(first), b.sqrt(second));
  Value limit = b.multiply(number_like(b, tolerance, sizes), sizes);
  Value large = b.compare(b.abs(between), limit, Compare::kGt);
  const Rotation by = rotation(b, first, second, b.select(large, between, number_like(b, 0, between)));
  return {moved_on(b, rotated(b, state[0], by, 2), 2), b.or_(state[1], b.reduce_or(large, {0, 1}))};
}

// Makes the columns of a orthogonal by rotations; returns a V and V, the product of the rotations.
Halves orthogonal_columns(Builder& b, Value a) {
  const int64_t rows = a.dim(1), columns = a.dim(2), padded = columns + columns % 2;
  const double tolerance = epsilon(a.dtype()) * std::sqrt(static_cast<double>(rows));
  Value v = identity(b, a.dtype(), a.dim(0), padded, padded);
  Value both = joined(b, {with_zeros(b, a, 0, padded - columns), v}, 1);
  both = sweeps(b, {both}, [&](Builder& b, const Values& state) {
    const Values init = {state[0], b.splat(0, kFlag)};
    return repeat(b, padded - 1, init, [&](Builder& b, Value, const Values& in) {
      return singular_round(b, in, rows, tolerance);
    });
  })[0];
  both = b.slice_dim(both, 2, 0, columns);
  return {b.slice_dim(both, 1, 0, rows), b.slice_dim(both, 1, rows, rows + columns)};
}

}  // namespace

Eigen eigen_of_hermitian(Builder& b, Value a) {
  const int64_t size = a.dim(1), padded = size + size % 2;
  const Scaled unit = scaled(b, a);
  const double tolerance = epsilon(a.dtype());
  Value total = sum_of_squares(b, unit.value, {1, 2});
  Value limit = b.multiply(total, number_like(b, tolerance * tolerance, total));
  const Values init = {with_zeros(b, unit.value, padded - size, padded - size),
                       identity(b, a.dtype(), a.dim(0), padded, padded)};
  const Values end = sweeps(b, init, [&](Builder& b, const Values& state) {
    Values next =
        repeat(b, padded - 1, state, [](Builder& b, Value, const Values& in) { return eigen_round(b, in); });
    Value off = b.compare(row_numbers(b, next[0]), column_numbers(b, next[0]), Compare::kNe);
    next.push_back(any_above(b, sum_of_squares(b, where(b, off, next[0]), {1, 2}), limit));
    return next;
  });
  Value values = b.slice_dim(real_part(b, diagonal(b, end[0])), 1, 0, size);
  values = b.multiply(values, b.broadcast(b.reshape(unit.scale, {a.dim(0), 1}), values.dims()));
  Value order = sorted_order(b, values, false);
  Value vectors = b.slice(end[1], {0, 0, 0}, {a.dim(0), size, size});
  return {elements_in_order(b, values, order), columns_in_order(b, vectors, order)};
}

SingularValues singular_values(Builder& b, Value a, bool full) {
  const int64_t rows = a.dim(1), columns = a.dim(2);
  if (rows < columns) {
    const SingularValues other = singular_values(b, adjoint(b, a), full);
    return {other.v, other.s, other.u};
  }
  const Scaled unit = scaled(b, a);
  const Halves made = orthogonal_columns(b, unit.value);
  Value s = b.sqrt(sum_of_squares(b, made.first, {1}));
  Value order = sorted_order(b, s, true);
  // Q of orthogonal columns equals these columns, up to their signs; for zero columns it has orthogonal ones.
  const QrFactors qr = qr_factor(b, columns_in_order(b, made.first, order));
  Value u = make_q(b, qr, full ? rows : columns);
  Value r = real_part(b, diagonal(b, qr.a));
  Value signs = b.select(is_less(b, r, 0), number_like(b, -1, r), number_like(b, 1, r));
  if (full) signs = b.pad(signs, b.splat(1, Type{signs.dtype(), {}}), {0, 0}, {0, rows - columns});
  u = b.multiply(u, b.broadcast_in_dim(to(b, signs, u.dtype()), u.dims(), {0, 2}));
  s = elements_in_order(b, s, order);
  s = b.multiply(s, b.broadcast(b.reshape(unit.scale, {a.dim(0), 1}), s.dims()));
  return {u, s, columns_in_order(b, made.second, order)};
}

}  // namespace sluice::ops
