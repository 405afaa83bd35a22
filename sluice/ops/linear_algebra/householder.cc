// Householder's QR, column by column, with the signs of LAPACK's geqrf: R's diagonal is real.
#include <algorithm>

#include "sluice/ops/linear_algebra/matrices.h"

namespace sluice::ops {
namespace {

Value element(Builder& b, Value x, Value k) {  // [batch, count] -> [batch, 1, 1]
  Value zero = b.splat(0, kNumber);
  return b.reshape(b.dynamic_slice(x, Values{zero, k}, {x.dim(0), 1}), {x.dim(0), 1, 1});
}

// Returns the Euclidean norm of columns [batch, rows, 1] of real numbers, without overflow: [batch, 1, 1].
Value norm(Builder& b, Value x) {
  const Dims one = {x.dim(0), 1, 1};
  Value largest = b.reshape(b.reduce_max(b.abs(x), {1}), one);
  Value zero = is_equal(b, largest, 0);
  Value scale = b.select(zero, number_like(b, 1, largest), largest);
  Value scaled = b.divide(x, b.broadcast(scale, x.dims()));
  return b.multiply(scale, b.sqrt(b.reshape(b.reduce_sum(b.multiply(scaled, scaled), {1}), one)));
}

// Returns x - tau v (vᴴ x).
Value reflect(Builder& b, Value x, Value v, Value tau) {
  Value wide = b.broadcast(v, x.dims());
  Value along = b.reshape(b.reduce_sum(b.multiply(conjugated(b, wide), x), {1}), {x.dim(0), 1, x.dim(2)});
  Value scaled = b.multiply(along, b.broadcast(tau, along.dims()));
  return b.subtract(x, b.multiply(wide, b.broadcast(scaled, x.dims())));
}

// Returns reflector k's vector: 1 at row k, 0 above it.
Value reflector(Builder& b, Value column, Value k) {
  Value rows = row_numbers(b, column);
  Value below = where(b, compare_with(b, rows, k, Compare::kGt), column);
  return b.select(compare_with(b, rows, k, Compare::kEq), number_like(b, 1, column), below);
}

// Does step k of the factorization: the reflector that makes column k zero below the diagonal (LAPACK's
// larfg).
Values make_zero_below(Builder& b, Value k, const Values& state) {
  Value a = state[0], tau = state[1];
  Value x = column(b, a, k), rows = row_numbers(b, x);
  Value head = row(b, x, k);
  Value below = where(b, compare_with(b, rows, k, Compare::kGt), x);
  const bool is_complex = stablehlo::is_complex(a.dtype());
  Value length = norm(b, b.abs(below)), real = real_part(b, head);
  Value nothing = is_equal(b, length, 0);
  if (is_complex) nothing = b.and_(nothing, is_equal(b, b.imaginary(head), 0));
  const Value both[] = {b.abs(head), length};
  Value whole = norm(b, b.concatenate(both, 1));
  Value beta = to(b, b.select(is_less(b, real, 0), whole, b.negate(whole)), a.dtype());
  Value one = number_like(b, 1, head), zero = number_like(b, 0, head);
  Value my_tau = b.select(nothing, zero, b.divide(b.subtract(beta, head), beta));
  Value divisor = b.select(nothing, one, b.subtract(head, beta));
  Value v = b.divide(below, b.broadcast(divisor, below.dims()));

  Value done = reflect(b, a, reflector(b, v, k), conjugated(b, my_tau));
  Value right = compare_with(b, column_numbers(b, a), k, Compare::kGt);
  Value mine = compare_with(b, column_numbers(b, a), k, Compare::kEq);
  Value diagonal = b.broadcast(b.select(nothing, head, beta), x.dims());
  Value new_column = b.select(compare_with(b, rows, k, Compare::kEq), diagonal,
                              b.select(compare_with(b, rows, k, Compare::kGt), v, x));
  a = b.select(right, done, b.select(mine, b.broadcast(new_column, a.dims()), a));
  return {a, b.dynamic_update_slice(tau, b.reshape(my_tau, {a.dim(0), 1}), Values{b.splat(0, kNumber), k})};
}

}  // namespace

QrFactors qr_factor(Builder& b, Value a) {
  const int64_t count = std::min(a.dim(1), a.dim(2));
  const Values state = {a, zeros(b, Type{a.dtype(), {a.dim(0), count}})};
  const Values end = repeat(b, count, state, make_zero_below);
  return {end[0], end[1]};
}

Value apply_reflectors(Builder& b, const QrFactors& factors, Value x, bool adjoint) {
  const int64_t count = factors.tau.dim(1);
  Value factor = adjoint ? conjugated(b, factors.tau) : factors.tau;
  return repeat(b, count, {x}, [&](Builder& b, Value i, const Values& state) -> Values {
    Value k = adjoint ? i : b.subtract(b.splat(count - 1, kNumber), i);
    Value v = reflector(b, column(b, factors.a, k), k);
    return {reflect(b, state[0], v, element(b, factor, k))};
  })[0];
}

Value make_q(Builder& b, const QrFactors& factors, int64_t columns) {
  return apply_reflectors(b, factors,
                          identity(b, factors.a.dtype(), factors.a.dim(0), factors.a.dim(1), columns), false);
}

}  // namespace sluice::ops
