// Special functions that are composed of others here, and the divisors of integers.
//
// Bessel functions: Chebyshev series with the coefficients of Cephes (Moshier), as LibTorch has them
// (ATen/native/Math.h): of exp(-x) I(x) in [0, 8] and of exp(-x) sqrt(x) I(x) above.
#include "sluice/ops/special/special.h"

#include <cmath>
#include <numbers>

#include "sluice/base/text/join.h"

namespace sluice::ops::special {
namespace {

constexpr double kI0Near[] = {
    -4.41534164647933937950E-18, 3.33079451882223809783E-17,  -2.43127984654795469359E-16,
    1.71539128555513303061E-15,  -1.16853328779934516808E-14, 7.67618549860493561688E-14,
    -4.85644678311192946090E-13, 2.95505266312963983461E-12,  -1.72682629144155570723E-11,
    9.67580903537323691224E-11,  -5.18979560163526290666E-10, 2.65982372468238665035E-9,
    -1.30002500998624804212E-8,  6.04699502254191894932E-8,   -2.67079385394061173391E-7,
    1.11738753912010371815E-6,   -4.41673835845875056359E-6,  1.64484480707288970893E-5,
    -5.75419501008210370398E-5,  1.88502885095841655729E-4,   -5.76375574538582365885E-4,
    1.63947561694133579842E-3,   -4.32430999505057594430E-3,  1.05464603945949983183E-2,
    -2.37374148058994688156E-2,  4.93052842396707084878E-2,   -9.49010970480476444210E-2,
    1.71620901522208775349E-1,   -3.04682672343198398683E-1,  6.76795274409476084995E-1};
constexpr double kI0Far[] = {
    -7.23318048787475395456E-18, -4.83050448594418207126E-18, 4.46562142029675999901E-17,
    3.46122286769746109310E-17,  -2.82762398051658348494E-16, -3.42548561967721913462E-16,
    1.77256013305652638360E-15,  3.81168066935262242075E-15,  -9.55484669882830764870E-15,
    -4.15056934728722208663E-14, 1.54008621752140982691E-14,  3.85277838274214270114E-13,
    7.18012445138366623367E-13,  -1.79417853150680611778E-12, -1.32158118404477131188E-11,
    -3.14991652796324136454E-11, 1.18891471078464383424E-11,  4.94060238822496958910E-10,
    3.39623202570838634515E-9,   2.26666899049817806459E-8,   2.04891858946906374183E-7,
    2.89137052083475648297E-6,   6.88975834691682398426E-5,   3.36911647825569408990E-3,
    8.04490411014108831608E-1};
constexpr double kI1Near[] = {
    2.77791411276104639959E-18,  -2.11142121435816608115E-17, 1.55363195773620046921E-16,
    -1.10559694773538630805E-15, 7.60068429473540693410E-15,  -5.04218550472791168711E-14,
    3.22379336594557470981E-13,  -1.98397439776494371520E-12, 1.17361862988909016308E-11,
    -6.66348972350202774223E-11, 3.62559028155211703701E-10,  -1.88724975172282928790E-9,
    9.38153738649577178388E-9,   -4.44505912879632808065E-8,  2.00329475355213526229E-7,
    -8.56872026469545474066E-7,  3.47025130813767847674E-6,   -1.32731636560394358279E-5,
    4.78156510755005422638E-5,   -1.61760815825896745588E-4,  5.12285956168575772895E-4,
    -1.51357245063125314899E-3,  4.15642294431288815669E-3,   -1.05640848946261981558E-2,
    2.47264490306265168283E-2,   -5.29459812080949914269E-2,  1.02643658689847095384E-1,
    -1.76416518357834055153E-1,  2.52587186443633654823E-1};
constexpr double kI1Far[] = {
    7.51729631084210481353E-18,  4.41434832307170791151E-18,  -4.65030536848935832153E-17,
    -3.20952592199342395980E-17, 2.96262899764595013876E-16,  3.30820231092092828324E-16,
    -1.88035477551078244854E-15, -3.81440307243700780478E-15, 1.04202769841288027642E-14,
    4.27244001671195135429E-14,  -2.10154184277266431302E-14, -4.08355111109219731823E-13,
    -7.19855177624590851209E-13, 2.03562854414708950722E-12,  1.41258074366137813316E-11,
    3.25260358301548823856E-11,  -1.89749581235054123450E-11, -5.58974346219658380687E-10,
    -3.83538038596423702205E-9,  -2.63146884688951950684E-8,  -2.51223623787020892529E-7,
    -3.88256480887769039346E-6,  -1.10588938762623716291E-4,  -9.76109749136146840777E-3,
    7.78576235018280120474E-1};

}  // namespace

Value chebyshev(Builder& b, Value x, std::span<const double> coefficients) {
  Value now = number_like(b, coefficients[0], x), before = zeros(b, x.type()), last = before;
  for (const double c : coefficients.subspan(1)) {
    last = before;
    before = now;
    now = b.add(b.subtract(b.multiply(x, before), last), number_like(b, c, x));
  }
  return b.multiply(b.subtract(now, last), number_like(b, 0.5, x));
}

namespace {

// Returns exp(-|x|) I0(|x|), or exp(-|x|) I1(|x|).
Value scaled_bessel(Builder& b, Value size, std::span<const double> near, std::span<const double> far,
                    bool first) {
  const auto number = [&](double n) { return number_like(b, n, size); };
  Value below = chebyshev(b, b.subtract(b.multiply(size, number(0.5)), number(2)), near);
  if (first) below = b.multiply(below, size);
  const Value inside = b.compare(size, number(8), Compare::kLe);
  const Value large = b.select(inside, number(8), size);
  const Value above =
      b.divide(chebyshev(b, b.subtract(b.divide(number(32), large), number(2)), far), b.sqrt(large));
  return b.select(inside, below, above);
}

Value i0e(Builder& b, Value x) { return scaled_bessel(b, b.abs(x), kI0Near, kI0Far, false); }
Value i1e(Builder& b, Value x) {
  const Value value = scaled_bessel(b, b.abs(x), kI1Near, kI1Far, true);
  return b.select(is_less(b, x, 0), b.negate(value), value);
}

}  // namespace

Value i0(Builder& b, Value x) { return b.multiply(i0e(b, x), b.exp(b.abs(x))); }
Value i1(Builder& b, Value x) { return b.multiply(i1e(b, x), b.exp(b.abs(x))); }

namespace {

// Returns the logarithm of the normal distribution's integral. Far below 0, where the integral is below the
// range of a float, it uses the asymptotic series (Abramowitz & Stegun (1964), 26.2.12).
Value log_ndtr(Builder& b, Value x) {
  const auto number = [&](double n) { return number_like(b, n, x); };
  const Value half_tail =
      b.multiply(b.chlo("erfc", b.multiply(x, number(-std::numbers::sqrt2 / 2))), number(0.5));
  const Value above = b.log1p(
      b.negate(b.multiply(b.chlo("erfc", b.multiply(x, number(std::numbers::sqrt2 / 2))), number(0.5))));
  const Value far = number(x.dtype() == DType::kF64 ? -30 : -12), tail = b.minimum(x, far);
  const Value inverse = b.divide(number(1), b.multiply(tail, tail));
  Value series = number(1);
  for (const double n : {9, 7, 5, 3, 1})
    series = b.subtract(number(1), b.multiply(b.multiply(series, number(n)), inverse));
  const Value exponent = b.multiply(b.multiply(tail, tail), number(-0.5));
  const Value constant = number(0.5 * std::log(2 * std::numbers::pi));
  const Value below = b.add(b.subtract(b.subtract(exponent, b.log(b.negate(tail))), constant), b.log(series));
  const Value inside = b.select(is_less(b, x, 1), b.log(half_tail), above);
  return b.select(b.compare(x, far, Compare::kLt), below, inside);
}

// ---- Integers ----

// Euclid's algorithm: (a, b) -> (b, a mod b) until b is 0.
Value greatest_divisor(Builder& b, Value x, Value y) {
  const auto size = [&](Value v) { return stablehlo::is_unsigned(v.dtype()) ? v : b.abs(v); };
  const Values init = {size(x), size(y)};
  const Dims all = all_dims(x);
  return b.while_(
      init,
      [&](Builder& body, std::span<const Value> v) {
        return Values{body.reduce_or(body.compare(v[1], zeros(body, v[1].type()), Compare::kNe), all)};
      },
      [](Builder& body, std::span<const Value> v) {
        const Value done = is_equal(body, v[1], 0);
        const Value divisor = body.select(done, number_like(body, 1, v[1]), v[1]);
        return Values{body.select(done, v[0], v[1]), body.select(done, v[1], body.remainder(v[0], divisor))};
      })[0];
}

Value least_multiple(Builder& b, Value x, Value y) {
  const Value divisor = greatest_divisor(b, x, y), none = is_equal(b, divisor, 0);
  const Value safe = b.select(none, number_like(b, 1, divisor), divisor);
  const Value multiple = b.multiply(b.divide(x, safe), y);
  return b.select(none, zeros(b, x.type()), stablehlo::is_unsigned(x.dtype()) ? multiple : b.abs(multiple));
}

template <auto Fn>
Values of_integers(Emit& e) {
  const DType dtype = e.promote({"self", "other"});
  e.check(stablehlo::is_integer(dtype), base::str("expected integers, found ", in_words(e.tensor("self")),
                                                  " and ", in_words(e.tensor("other"))));
  const Values v = operands(e, dtype, {"self", "other"});
  return {Fn(e.b, v[0], v[1])};
}

}  // namespace

Values gcd(Emit& e) { return of_integers<greatest_divisor>(e); }
Values lcm(Emit& e) { return of_integers<least_multiple>(e); }
Values bessel_i0(Emit& e) { return float_unary<i0>(e); }
Values bessel_i0e(Emit& e) { return float_unary<i0e>(e); }
Values bessel_i1(Emit& e) { return float_unary<i1>(e); }
Values bessel_i1e(Emit& e) { return float_unary<i1e>(e); }
Values log_normal_integral(Emit& e) { return float_unary<log_ndtr>(e); }

// Computed in the tensors' own type, because the next f32 after a bf16 number is not a bf16 number.
Values next_after(Emit& e) {
  const DType dtype = e.promote({"self", "other"});
  e.check(stablehlo::is_float(dtype), "expected float tensors");
  const Values v = operands(e, dtype, {"self", "other"});
  return {e.b.chlo("next_after", v[0], v[1])};
}

}  // namespace sluice::ops::special
