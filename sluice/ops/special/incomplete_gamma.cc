// The regularized incomplete gamma functions P (igamma) and Q = 1 - P (igammac), and exp(x²) erfc(x) (erfcx).
//
// P is computed by its power series if x is at most a, else Q by its continued fraction (Cephes (Moshier),
// igam.c); for a above 20,000, where these need thousands of rounds, both by the uniform expansion of Temme
// (1979). All of it is in f64, because their factor x^a exp(-x) / Gamma(a + 1) is a small difference of large
// numbers in the exponent. erfcx is computed by the rational approximations of Cody (1969).
#include <cmath>
#include <functional>
#include <numbers>

#include "sluice/base/text/join.h"
#include "sluice/ops/special/special.h"

namespace sluice::ops::special {
namespace {

constexpr double kRounding = 1.2e-16;
constexpr int64_t kMaxRounds = 2000;
constexpr double kManyRounds = 2e4;  // the value of a from which the expansion is used

Value is_above(Builder& b, Value x, double n) { return b.compare(x, number_like(b, n, x), Compare::kGt); }

// Returns log(x^a exp(-x) / Gamma(a + 1)). For large a it uses Stirling's series, in which the large terms
// cancel.
Value log_factor(Builder& b, Value a, Value x) {
  const auto number = [&](double n) { return number_like(b, n, a); };
  const Value one = number(1), big = is_above(b, a, 10);
  const Value small_a = b.select(big, one, a);
  const Value plain =
      b.subtract(b.subtract(b.multiply(small_a, b.log(x)), x), b.chlo("lgamma", b.add(small_a, one)));
  const Value large_a = b.select(big, a, number(10)), inverse = b.divide(one, large_a);
  const Value away = b.divide(b.subtract(x, large_a), large_a);
  const Value distance = b.multiply(large_a, b.subtract(away, b.log1p(away)));
  const Value square = b.multiply(inverse, inverse);
  Value series = number(1.0 / 1188);
  for (const double c : {-1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12})
    series = b.add(b.multiply(series, square), number(c));
  const Value root = b.multiply(number(0.5), b.log(b.multiply(large_a, number(2 * std::numbers::pi))));
  const Value stirling = b.negate(b.add(b.add(distance, root), b.multiply(series, inverse)));
  return b.select(big, stirling, plain);
}

// Repeats `body` until the first of its values (true for an element that has converged) is true everywhere.
// The second value is the number of rounds.
Values until_all(Builder& b, Values start,
                 const std::function<Values(Builder&, std::span<const Value>)>& body) {
  const Dims all = all_dims(start[0]);
  return b.while_(
      start,
      [&](Builder& in, std::span<const Value> v) {
        const Value more = in.reduce_or(in.not_(v[0]), all);
        return Values{in.and_(more, is_less(in, v[1], kMaxRounds))};
      },
      body);
}

// Returns the sum of x^n / ((a + 1) … (a + n)).
Value series(Builder& b, Value a, Value x, Value wanted) {
  const auto number = [&](double n) { return number_like(b, n, a); };
  const Value one = number(1);
  return until_all(
      b, {b.not_(wanted), b.splat(0, {DType::kS64, {}}), a, one, one, x},
      [](Builder& in, std::span<const Value> v) {
        const Value r = in.add(v[2], number_like(in, 1, v[2]));
        const Value term = in.multiply(v[3], in.divide(v[5], r)), sum = in.add(v[4], term);
        const Value more = in.compare(term, in.multiply(sum, number_like(in, kRounding, sum)), Compare::kGt);
        return Values{
            in.or_(v[0], in.not_(more)), in.add(v[1], number_like(in, 1, v[1])), r, term, sum, v[5]};
      })[4];
}

// Returns Gamma(a, x) exp(x) x^-a by its continued fraction, for x above a and 1.
Value fraction(Builder& b, Value a, Value x, Value wanted) {
  const auto number = [&](double n) { return number_like(b, n, a); };
  const Value one = number(1), y = b.subtract(one, a), z = b.add(b.add(x, y), one);
  const Value over = b.add(x, one), under = b.multiply(z, x);
  const Values start = {b.not_(wanted), b.splat(0, {DType::kS64, {}}), y, z, number(0), one, x, over,
                        under,          b.divide(over, under)};
  return until_all(b, start, [](Builder& in, std::span<const Value> v) {
    const auto number = [&](double n) { return number_like(in, n, v[2]); };
    const Value y = in.add(v[2], number(1)), z = in.add(v[3], number(2)), c = in.add(v[4], number(1));
    const Value yc = in.multiply(y, c);
    const Value over = in.subtract(in.multiply(v[7], z), in.multiply(v[5], yc));
    const Value under = in.subtract(in.multiply(v[8], z), in.multiply(v[6], yc));
    const Value ratio = in.divide(over, under);
    const Value change = in.abs(in.divide(in.subtract(v[9], ratio), ratio));
    const Value more = in.compare(change, number(kRounding), Compare::kGt);
    // Both sides grow without bound; only their ratio matters.
    const Value scale =
        in.select(in.compare(in.abs(over), number(0x1p52), Compare::kGt), number(0x1p-52), number(1));
    return Values{in.or_(v[0], in.not_(more)),
                  in.add(v[1], number_like(in, 1, v[1])),
                  y,
                  z,
                  c,
                  in.multiply(v[7], scale),
                  in.multiply(v[8], scale),
                  in.multiply(over, scale),
                  in.multiply(under, scale),
                  in.select(v[0], v[9], ratio)};
  })[9];
}

// Returns Q for a above kManyRounds: erfc(eta sqrt(a / 2)) / 2 and a correction, with eta²/2 = d - log(1 + d)
// and d = x/a - 1. Where the correction is not 0, eta is below 0.1, so that Taylor series of its first two
// coefficients are enough.
Value expansion(Builder& b, Value a, Value x) {
  const auto number = [&](double n) { return number_like(b, n, a); };
  constexpr double kFirst[] = {-1.85406221071515996e-6, -2.18544851067999216e-6, 3.91926317852243778e-5,
                               -1.78755144032921811e-4, 3.52733686067019400e-4,  1.15740740740740741e-3,
                               -1.48148148148148148e-2, 8.33333333333333333e-2,  -3.33333333333333333e-1};
  constexpr double kSecond[] = {2.05761316872427984e-4, -9.90226337448559671e-4, 2.64550264550264550e-3,
                                -3.47222222222222222e-3, -1.85185185185185185e-3};
  const Value away = b.divide(b.subtract(x, a), a);
  const Value half_square = b.maximum(b.subtract(away, b.log1p(away)), number(0));
  const Value size = b.sqrt(b.multiply(half_square, number(2)));
  const Value eta = b.select(is_less(b, away, 0), b.negate(size), size);
  const Value near = b.clamp(number(-1), eta, number(1));
  const Value correction = b.add(polynomial(b, near, kFirst), b.divide(polynomial(b, near, kSecond), a));
  const Value density = b.divide(b.exp(b.negate(b.multiply(a, half_square))),
                                 b.sqrt(b.multiply(a, number(2 * std::numbers::pi))));
  const Value tail = b.chlo("erfc", b.multiply(eta, b.sqrt(b.multiply(a, number(0.5)))));
  return b.add(b.multiply(tail, number(0.5)), b.multiply(density, correction));
}

// Returns P, or with Upper its complement Q.
template <bool Upper>
Value incomplete_gamma(Builder& b, Value a, Value x) {
  const auto number = [&](double n) { return number_like(b, n, a); };
  const Value one = number(1), zero = number(0), infinite = number(INFINITY);
  const Value proper =
      b.and_(b.and_(is_above(b, a, 0), is_above(b, x, 0)),
             b.and_(b.compare(a, infinite, Compare::kLt), b.compare(x, infinite, Compare::kLt)));
  const Value many = b.and_(proper, is_above(b, a, kManyRounds));
  const Value above = b.and_(b.compare(x, a, Compare::kGt), is_above(b, x, 1));
  const Value few = b.and_(proper, b.not_(many));
  const Value by_fraction = b.and_(few, above), by_series = b.and_(few, b.not_(above));
  // Elements that use another method get numbers that end the loops at once.
  const Value factor = b.exp(log_factor(b, b.select(few, a, one), b.select(few, x, one)));
  const Value lower =
      b.multiply(factor, series(b, b.select(by_series, a, one), b.select(by_series, x, one), by_series));
  const Value fraction_a = b.select(by_fraction, a, one), fraction_x = b.select(by_fraction, x, number(2));
  const Value upper =
      b.multiply(b.multiply(factor, fraction_a), fraction(b, fraction_a, fraction_x, by_fraction));
  const Value far = expansion(b, b.select(many, a, one), b.select(many, x, one));
  const auto other = [&](Value v) { return b.subtract(one, v); };
  Value result = b.select(by_fraction, Upper ? upper : other(upper), Upper ? other(lower) : lower);
  result = b.select(many, Upper ? far : other(far), result);
  const Value all = Upper ? zero : one, none = Upper ? one : zero, nan = number(NAN);
  result = b.select(b.or_(is_nan(b, a), is_nan(b, x)), nan, result);
  // The results at the ends are LibTorch's (ATen/native/Math.h).
  const Value x_infinite = is_equal(b, x, INFINITY), a_infinite = is_equal(b, a, INFINITY);
  result = b.select(x_infinite, all, result);
  result = b.select(a_infinite, b.select(x_infinite, nan, none), result);
  result = b.select(is_equal(b, x, 0), none, result);
  result = b.select(is_equal(b, a, 0), b.select(is_above(b, x, 0), all, nan), result);
  return b.select(b.or_(is_less(b, a, 0), is_less(b, x, 0)), nan, result);
}

// The coefficients of erfcx in (0.46875, 4] and above, highest powers first.
constexpr double kErfcMiddleOver[] = {2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0,
                                      6.61191906371416295e1,  2.98635138197400131e2,  8.81952221241769090e2,
                                      1.71204761263407058e3,  2.05107837782607147e3,  1.23033935479799725e3};
constexpr double kErfcMiddleUnder[] = {1.0,
                                       1.57449261107098347e1,
                                       1.17693950891312499e2,
                                       5.37181101862009858e2,
                                       1.62138957456669019e3,
                                       3.29079923573345963e3,
                                       4.36261909014324716e3,
                                       3.43936767414372164e3,
                                       1.23033935480374942e3};
constexpr double kFarOver[] = {1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
                               1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4};
constexpr double kFarUnder[] = {1.0,
                                2.56852019228982242e0,
                                1.87295284992346725e0,
                                5.27905102951428412e-1,
                                6.05183413124413191e-2,
                                2.33520497626869185e-3};

Value scaled_erfc(Builder& b, Value x) {
  const auto number = [&](double n) { return number_like(b, n, x); };
  const Value size = b.abs(x), near = b.clamp(number(-0.46875), x, number(0.46875));
  const Value inside = b.multiply(b.exp(b.multiply(near, near)), b.chlo("erfc", near));
  const Value middle = ratio(b, b.minimum(size, number(4)), kErfcMiddleOver, kErfcMiddleUnder);
  const Value far_size = b.maximum(size, number(4)), inverse = b.divide(number(1), far_size),
              square = b.multiply(inverse, inverse);
  const Value rest = b.multiply(square, ratio(b, square, kFarOver, kFarUnder));
  const Value far = b.multiply(b.subtract(number(std::numbers::inv_sqrtpi), rest), inverse);
  const Value right = b.select(is_less(b, size, 4), middle, far);
  // exp(x²) is split into two factors: the first argument has few bits, so that its square is exact.
  const Value bounded = b.minimum(size, number(30));  // the result for 30 is infinite
  const Value coarse = b.divide(b.floor(b.multiply(bounded, number(16))), number(16));
  const Value fine = b.multiply(b.subtract(bounded, coarse), b.add(bounded, coarse));
  const Value growth = b.multiply(b.exp(b.multiply(coarse, coarse)), b.exp(fine));
  const Value left = b.subtract(b.multiply(number(2), growth), right);
  const Value outside = b.select(is_less(b, x, 0), left, right);
  return b.select(is_less(b, size, 0.46875), inside, outside);
}

template <bool Upper>
Values of_two(Emit& e) {
  const DType dtype = e.promote({"self", "other"});
  e.check(stablehlo::is_float(dtype), base::str("expected floats, found ", in_words(e.tensor("self")),
                                                " and ", in_words(e.tensor("other"))));
  const Values v = operands(e, DType::kF64, {"self", "other"});
  return {to(e.b, incomplete_gamma<Upper>(e.b, v[0], v[1]), dtype)};
}

}  // namespace

Values incomplete_gamma_lower(Emit& e) { return of_two<false>(e); }
Values incomplete_gamma_upper(Emit& e) { return of_two<true>(e); }
Values scaled_complementary_error(Emit& e) { return float_unary<scaled_erfc>(e); }

}  // namespace sluice::ops::special
