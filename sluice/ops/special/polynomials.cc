// Orthogonal polynomials: Chebyshev's (four kinds, also shifted to [0, 1]), Hermite (two kinds),
// Laguerre and Legendre, by their recurrences (Abramowitz & Stegun (1964), 22.7). One loop runs up to the
// largest order of all elements. Orders are truncated to integers; a polynomial of an order below 0 is 0, as
// in LibTorch.
#include <cmath>

#include "sluice/ops/common.h"

namespace sluice::ops {
namespace {

Value number(Builder& b, double n, Value like) { return number_like(b, n, like); }
Value times(Builder& b, Value x, double factor) { return b.multiply(x, number(b, factor, x)); }
Value plus(Builder& b, Value x, double term) { return b.add(x, number(b, term, x)); }

// Returns the polynomial of order k + 1 at x, from the polynomials of the orders k and k - 1. k has x's dims.
using Next = Value (*)(Builder& b, Value x, Value k, Value now, Value before);

Value next_chebyshev(Builder& b, Value x, Value, Value now, Value before) {
  return b.subtract(b.multiply(times(b, x, 2), now), before);
}

Value next_hermite_h(Builder& b, Value x, Value k, Value now, Value before) {
  return b.subtract(b.multiply(times(b, x, 2), now), b.multiply(times(b, k, 2), before));
}

Value next_hermite_he(Builder& b, Value x, Value k, Value now, Value before) {
  return b.subtract(b.multiply(x, now), b.multiply(k, before));
}

// Returns (factor * now - k * before) / (k + 1).
Value weighted(Builder& b, Value factor, Value k, Value now, Value before) {
  return b.divide(b.subtract(b.multiply(factor, now), b.multiply(k, before)), plus(b, k, 1));
}

Value next_laguerre(Builder& b, Value x, Value k, Value now, Value before) {
  const Value factor = b.add(times(b, k, 2), b.subtract(number(b, 1, x), x));
  return weighted(b, factor, k, now, before);
}

Value next_legendre(Builder& b, Value x, Value k, Value now, Value before) {
  return weighted(b, b.multiply(plus(b, times(b, k, 2), 1), x), k, now, before);
}

Value is_running(Builder& b, Value order, Value k, Value now) {
  return b.and_(b.compare(order, k, Compare::kGt), b.not_(is_nan(b, now)));
}

// Returns the polynomial of each order from 1 on; `first` is the polynomial of order 1.
Value by_recurrence(Builder& b, Value x, Value order, Value first, Next next) {
  const Value init[] = {number(b, 1, x), x, order, number(b, 1, x), first};
  return b.while_(
      init,
      [](Builder& in, std::span<const Value> v) {
        return Values{in.reduce_or(is_running(in, v[2], v[0], v[4]), all_dims(v[1]))};
      },
      [next](Builder& in, std::span<const Value> v) {
        const Value runs = is_running(in, v[2], v[0], v[4]);
        const Value following = next(in, v[1], v[0], v[4], v[3]);
        return Values{plus(in, v[0], 1), v[1], v[2], in.select(runs, v[4], v[3]),
                      in.select(runs, following, v[4])};
      })[4];
}

struct Arguments {
  DType dtype;
  Value x, order;
};

Arguments arguments(Emit& e) {
  const DType dtype = e.promote_float({"x", "n"});
  const Values v = operands(e, compute_type(dtype), {"x", "n"});
  return {dtype, v[0], truncate(e.b, v[1])};
}

// Puts 1 for order 0 and 0 for orders below it.
Values of_all_orders(Emit& e, const Arguments& a, Value value) {
  Builder& b = e.b;
  value = b.select(is_equal(b, a.order, 0), number(b, 1, value), value);
  return {to(b, b.select(is_less(b, a.order, 0), number(b, 0, value), value), a.dtype)};
}

// ---- Chebyshev ----

enum class Kind : uint8_t { kT, kU, kV, kW };

Value first_chebyshev(Builder& b, Value x, Kind kind) {
  if (kind == Kind::kT) return x;
  return plus(b, times(b, x, 2), kind == Kind::kV ? -1 : kind == Kind::kW ? 1 : 0);
}

// Returns the value at 1, or, without its sign, the value at -1.
Value chebyshev_at_end(Builder& b, Value order, Kind kind, bool upper) {
  if (kind == Kind::kU) return plus(b, order, 1);
  const bool grows = kind == (upper ? Kind::kW : Kind::kV);
  return grows ? plus(b, times(b, order, 2), 1) : number(b, 1, order);
}

Value sign_at_lower_end(Builder& b, Value order) {
  const Value half = times(b, order, 0.5);
  return b.select(b.compare(b.floor(half), half, Compare::kEq), number(b, 1, order), number(b, -1, order));
}

// Returns the value for x between -1 and 1 by angles, as LibTorch does above order 6: the loop would run up
// to any order.
Value chebyshev_by_angle(Builder& b, Value x, Value order, Kind kind) {
  const Value angle = b.chlo("acos", x), half = times(b, angle, 0.5);
  const auto angle_of = [&](double more) { return b.multiply(plus(b, order, more), angle); };
  Value inside;
  if (kind == Kind::kT) inside = b.cosine(angle_of(0));
  if (kind == Kind::kU) inside = b.divide(b.sine(angle_of(1)), b.sine(angle));
  if (kind == Kind::kV) inside = b.divide(b.cosine(angle_of(0.5)), b.cosine(half));
  if (kind == Kind::kW) inside = b.divide(b.sine(angle_of(0.5)), b.sine(half));
  const Value lower = b.multiply(chebyshev_at_end(b, order, kind, false), sign_at_lower_end(b, order));
  inside = b.select(is_equal(b, x, -1), lower, inside);
  return b.select(is_equal(b, x, 1), chebyshev_at_end(b, order, kind, true), inside);
}

template <Kind kKind, bool kShifted>
Values chebyshev(Emit& e) {
  Builder& b = e.b;
  const Arguments a = arguments(e);
  const Value x = kShifted ? plus(b, times(b, a.x, 2), -1) : a.x;
  const Value one = number(b, 1, x), inside = b.compare(b.abs(x), one, Compare::kLe);
  const Value by_angle = b.and_(inside, b.compare(a.order, number(b, 6, x), Compare::kGt));
  const Value by_loop =
      by_recurrence(b, x, b.select(by_angle, one, a.order), first_chebyshev(b, x, kKind), next_chebyshev);
  return of_all_orders(e, a, b.select(by_angle, chebyshev_by_angle(b, x, a.order, kKind), by_loop));
}

// ---- the others ----

// Above these orders LibTorch has NaN, and so ends its loop.
double largest_hermite_order(DType dtype) { return dtype == DType::kF64 ? 512 : 128; }

template <Next kNext>
Values hermite(Emit& e) {
  Builder& b = e.b;
  const Arguments a = arguments(e);
  const Value high = b.compare(a.order, number(b, largest_hermite_order(a.x.dtype()), a.x), Compare::kGt);
  const Value first = kNext == next_hermite_h ? times(b, a.x, 2) : a.x;
  const Value value = by_recurrence(b, a.x, b.select(high, number(b, 1, a.x), a.order), first, kNext);
  return of_all_orders(e, a, b.select(high, number(b, NAN, a.x), value));
}

Values laguerre(Emit& e) {
  const Arguments a = arguments(e);
  const Value first = e.b.subtract(number(e.b, 1, a.x), a.x);
  return of_all_orders(e, a, by_recurrence(e.b, a.x, a.order, first, next_laguerre));
}

Values legendre(Emit& e) {
  const Arguments a = arguments(e);
  return of_all_orders(e, a, by_recurrence(e.b, a.x, a.order, a.x, next_legendre));
}

const Row kPolynomialsRows[] = {
    {.name = "aten::special_chebyshev_polynomial_t", .emit = chebyshev<Kind::kT, false>},
    {.name = "aten::special_chebyshev_polynomial_u", .emit = chebyshev<Kind::kU, false>},
    {.name = "aten::special_chebyshev_polynomial_v", .emit = chebyshev<Kind::kV, false>},
    {.name = "aten::special_chebyshev_polynomial_w", .emit = chebyshev<Kind::kW, false>},
    {.name = "aten::special_hermite_polynomial_h", .emit = hermite<next_hermite_h>},
    {.name = "aten::special_hermite_polynomial_he", .emit = hermite<next_hermite_he>},
    {.name = "aten::special_laguerre_polynomial_l", .emit = laguerre},
    {.name = "aten::special_legendre_polynomial_p", .emit = legendre},
    {.name = "aten::special_shifted_chebyshev_polynomial_t", .emit = chebyshev<Kind::kT, true>},
    {.name = "aten::special_shifted_chebyshev_polynomial_u", .emit = chebyshev<Kind::kU, true>},
    {.name = "aten::special_shifted_chebyshev_polynomial_v", .emit = chebyshev<Kind::kV, true>},
    {.name = "aten::special_shifted_chebyshev_polynomial_w", .emit = chebyshev<Kind::kW, true>},
};

}  // namespace

std::span<const Row> polynomial_rows() { return kPolynomialsRows; }

}  // namespace sluice::ops
