// Gamma, Dirichlet, Poisson and binomial distributions: draws in a loop that ends when every element is
// drawn, and the gradients of gamma and Dirichlet samples by the distributions' parameters.
//
// A parameter that LibTorch refuses (a negative rate) gives NaN.
#include <cmath>
#include <limits>
#include <numbers>

#include "sluice/base/text/join.h"
#include "sluice/ops/random.h"

namespace sluice::ops::random {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Value minus(Builder& b, double number, Value x) { return b.subtract(number_like(b, number, x), x); }
Value plus(Builder& b, Value x, double number) { return b.add(x, number_like(b, number, x)); }
Value times(Builder& b, Value x, double number) { return b.multiply(x, number_like(b, number, x)); }
Value square(Builder& b, Value x) { return b.multiply(x, x); }

// Returns c[0] + c[1] x + c[2] x² + …
Value power_series(Builder& b, Value x, std::span<const double> c) {
  Value sum = number_like(b, c.back(), x);
  for (size_t i = c.size() - 1; i-- > 0;) sum = plus(b, b.multiply(sum, x), c[i]);
  return sum;
}

Value digamma(Builder& b, Value x) { return b.chlo("digamma", x); }

// Returns uniform numbers in (0, 1].
Value positive_uniform(Builder& b, Source& source, const Type& type) {
  return minus(b, 1, source.uniform(type.dtype, type.dims));
}

// A candidate for each element, and whether it is accepted.
struct Draw {
  Value candidate, accepted;
};
using Propose = std::function<Draw(Builder& b, Source& source)>;

// Draws until each element that `wanted` marks is accepted; the other elements are 0.
Value draw_until_accepted(Builder& b, Source& source, Value wanted, DType dtype, const Propose& propose) {
  const Value none = zeros(b, Type{dtype, wanted.dims()});
  const Dims all = all_dims(wanted);
  const Values init = {source.state(), wanted, none};
  const Values made = b.while_(
      init, [&](Builder& body, std::span<const Value> v) { return Values{body.reduce_or(v[1], all)}; },
      [&](Builder& body, std::span<const Value> v) {
        Source inside(body, v[0], Source::Kind::kThreefry);
        const Draw draw = propose(body, inside);
        const Value taken = body.and_(v[1], draw.accepted);
        return Values{inside.state(), body.and_(v[1], body.not_(draw.accepted)),
                      body.select(taken, draw.candidate, v[2])};
      });
  source = Source(b, made[0], Source::Kind::kThreefry);
  return made[2];
}

// ---- Gamma and Dirichlet ----

// A gamma sample is `sample` times exp(log_boost).
struct Gamma {
  Value sample, log_boost;
};

// Draws by Marsaglia and Tsang (2000), "A simple method for generating gamma variables". For alpha below 1, a
// sample for alpha + 1 is scaled by u^(1 / alpha).
Gamma draw_gamma(Builder& b, Source& source, Value alpha) {
  const Type type = alpha.type();
  const Value small = is_less(b, alpha, 1);
  const Value d = plus(b, b.select(small, plus(b, alpha, 1), alpha), -1.0 / 3);
  const Value c = b.rsqrt(times(b, d, 9));
  const Value log_boost =
      b.select(small, b.divide(b.log(positive_uniform(b, source, type)), alpha), zeros(b, type));
  const Value wanted = b.and_(b.compare(alpha, zeros(b, type), Compare::kGt), is_less(b, alpha, INFINITY));
  const Value sample = draw_until_accepted(b, source, wanted, type.dtype, [&](Builder& body, Source& inside) {
    const Value x = inside.normal(type.dtype, type.dims), y = plus(body, body.multiply(c, x), 1);
    const Value v = body.multiply(square(body, y), y), u = positive_uniform(body, inside, type);
    const Value half = times(body, square(body, x), 0.5);
    const Value bound = body.add(half, body.multiply(d, body.add(minus(body, 1, v), body.log(v))));
    const Value possible = body.compare(y, zeros(body, type), Compare::kGt);
    return Draw{body.multiply(d, v), body.and_(possible, body.compare(body.log(u), bound, Compare::kLt))};
  });
  return {sample, log_boost};
}

Value read_floats(Emit& e, std::string_view name) {
  const Value x = e.tensor(name);
  e.check(stablehlo::is_float(x.dtype()),
          base::str("expected '", name, "' to be a tensor of floats, found ", in_words(x)));
  return to(e.b, x, compute_type(x.dtype()));
}

}  // namespace

Values standard_gamma(Emit& e) {
  Builder& b = e.b;
  const Value alpha = read_floats(e, "self");
  Source source(e, Source::Kind::kThreefry);
  const Gamma gamma = draw_gamma(b, source, alpha);
  Value sample = b.multiply(gamma.sample, b.exp(gamma.log_boost));
  sample = b.maximum(sample, number_like(b, smallest_normal(sample.dtype()), sample));
  sample = b.select(is_equal(b, alpha, 0), zeros(b, alpha.type()), sample);
  const Value known =
      b.and_(b.compare(alpha, zeros(b, alpha.type()), Compare::kGe), is_less(b, alpha, INFINITY));
  return {to(b, b.select(known, sample, number_like(b, kNaN, sample)), e.tensor("self").dtype())};
}

// Returns gamma samples over their sum, in logarithms: samples of small parameters are below the range of a
// float.
Values dirichlet(Emit& e) {
  Builder& b = e.b;
  const Value alpha = read_floats(e, "self");
  e.check(alpha.rank() > 0, "expected at least one dimension, found a 0-d tensor");
  Source source(e, Source::Kind::kThreefry);
  const Gamma gamma = draw_gamma(b, source, alpha);
  const Value logarithm = b.add(b.log(gamma.sample), gamma.log_boost);
  const int64_t last = alpha.rank() - 1;
  Dims kept = alpha.dims();
  kept.back() = 1;
  const auto along = [&](Value v) { return b.broadcast(b.reshape(v, kept), alpha.dims()); };
  const Value share = b.exp(b.subtract(logarithm, along(b.reduce_max(logarithm, {last}))));
  return {to(b, b.divide(share, along(b.reduce_sum(share, {last}))), e.tensor("self").dtype())};
}

// ---- The derivative of a gamma sample by alpha: -(d cdf / d alpha) / pdf ----
//
// Formulas and coefficients are LibTorch's (ATen/native/Distributions.h, standard_gamma_grad_one).

namespace {

// A Taylor series around 0, for x < 0.8.
Value gamma_slope_small(Builder& b, Value alpha, Value x) {
  Value numerator = number_like(b, 1, x), denominator = alpha;
  Value series1 = b.divide(numerator, alpha), series2 = b.divide(numerator, square(b, alpha));
  for (int i = 1; i <= 5; ++i) {
    numerator = b.multiply(numerator, times(b, x, -1.0 / i));
    denominator = plus(b, denominator, 1);
    series1 = b.add(series1, b.divide(numerator, denominator));
    series2 = b.add(series2, b.divide(numerator, square(b, denominator)));
  }
  const Value power = b.power(x, alpha), cdf = b.multiply(power, series1);
  const Value pdf = b.multiply(b.power(x, plus(b, alpha, -1)), b.exp(b.negate(x)));
  const Value cdf_slope =
      b.subtract(b.multiply(b.subtract(b.log(x), digamma(b, alpha)), cdf), b.multiply(power, series2));
  const Value slope = b.negate(b.divide(cdf_slope, pdf));
  return b.select(is_nan(b, slope), zeros(b, slope.type()), slope);
}

// A saddle point expansion (Rice), for alpha > 8; near the mean its limit.
Value gamma_slope_large(Builder& b, Value alpha, Value x) {
  const Value alpha2 = square(b, alpha);
  const Value numerator1 = plus(b, times(b, b.multiply(alpha, plus(b, times(b, alpha, 12), 1)), 24), 1);
  Value numerator2 =
      b.add(times(b, alpha2, 1440), times(b, b.multiply(x, minus(b, 53, times(b, x, 120))), 6));
  numerator2 = b.subtract(numerator2, b.divide(times(b, square(b, x), 65), alpha));
  numerator2 = b.add(numerator2, b.multiply(alpha, plus(b, times(b, x, 3600), 107)));
  const Value limit = b.divide(b.multiply(numerator1, numerator2), times(b, square(b, alpha2), 1244160));
  const Value logarithm = b.log(b.divide(x, alpha)), distance = b.subtract(alpha, x);
  const Value root = b.sqrt(times(b, alpha, 8)), term2 = b.divide(root, distance);
  const Value base = b.subtract(b.subtract(x, alpha), b.multiply(alpha, logarithm));
  const Value term3 = b.power(base, number_like(b, -1.5, base));
  const Value both = b.add(term2, b.select(b.compare(x, alpha, Compare::kLt), b.negate(term3), term3));
  const Value spread = b.divide(
      b.multiply(b.sqrt(b.divide(number_like(b, 2, alpha), alpha)), b.add(alpha, x)), square(b, distance));
  const Value term1 = b.subtract(b.multiply(logarithm, both), spread);
  const Value inverse = b.divide(number_like(b, 1, alpha), alpha);
  const Value stirling =
      plus(b, b.multiply(times(b, inverse, 1.0 / 12), plus(b, times(b, inverse, 1.0 / 24), 1)), 1);
  const Value away = b.negate(b.divide(b.multiply(stirling, b.multiply(x, term1)), root));
  const Value near = b.and_(b.compare(times(b, alpha, 0.9), x, Compare::kLe),
                            b.compare(x, times(b, alpha, 1.1), Compare::kLe));
  return b.select(near, limit, away);
}

// A rational approximation in log(x / alpha) and log(alpha), for the rest.
Value gamma_slope_middle(Builder& b, Value alpha, Value x) {
  constexpr double kCoefficients[8][3] = {{0.16009398, 0.53487893, 0.040121004},
                                          {-0.094634809, 0.1298071, -0.0065914022},
                                          {0.025146376, 0.065735949, -0.0026286047},
                                          {-0.0030648343, -0.0015649758, -0.0013441777},
                                          {1, 0.16639465, 0.017050642},
                                          {0.32668115, 0.020070113, -0.0021309326},
                                          {0.10406089, -0.0035938915, 0.00085092367},
                                          {0.0014179084, -0.00058392623, -1.5247877e-07}};
  const Value u = b.log(b.divide(x, alpha)), v = b.log(alpha);
  const auto of_v = [&](size_t first) {
    Value sum;
    for (size_t i = first + 4; i-- > first;) {
      const Value c = power_series(b, u, kCoefficients[i]);
      sum = sum ? b.add(b.multiply(sum, v), c) : c;
    }
    return sum;
  };
  return b.exp(b.divide(of_v(0), of_v(4)));
}

}  // namespace

Values standard_gamma_gradient(Emit& e) {
  Builder& b = e.b;
  const Value self = read_floats(e, "self"), output = read_floats(e, "output");
  const Values v = broadcast_together(b, {self, output});
  const Value alpha = v[0], x = v[1];
  const Value large = b.compare(alpha, number_like(b, 8, alpha), Compare::kGt);
  const Value rest = b.select(large, gamma_slope_large(b, alpha, x), gamma_slope_middle(b, alpha, x));
  const Value slope = b.select(is_less(b, x, 0.8), gamma_slope_small(b, alpha, x), rest);
  return {to(b, slope, e.tensor("self").dtype())};
}

// ---- The derivative of a Dirichlet sample: -(d cdf / d alpha) / pdf / (1 - x) of Beta(alpha, total - alpha)
// ----
//
// Formulas and coefficients are LibTorch's (ATen/native/Distributions.h, dirichlet_grad_one).

namespace {

Value no_nan(Builder& b, Value x) { return b.select(is_nan(b, x), zeros(b, x.type()), x); }

// The derivative by alpha, for x near 0.
Value beta_slope_alpha(Builder& b, Value x, Value alpha, Value beta) {
  const Value factor = b.subtract(b.subtract(digamma(b, alpha), digamma(b, b.add(alpha, beta))), b.log(x));
  const auto term = [&](Value numerator, Value denominator) {
    const Value inverse = b.divide(number_like(b, 1, denominator), denominator);
    return b.multiply(b.multiply(numerator, inverse), b.add(factor, inverse));
  };
  Value numerator = number_like(b, 1, x), series = term(numerator, alpha);
  for (int i = 1; i <= 10; ++i) {
    numerator = b.multiply(numerator, times(b, b.multiply(minus(b, i, beta), x), 1.0 / i));
    series = b.add(series, term(numerator, plus(b, alpha, i)));
  }
  return no_nan(b, b.multiply(b.multiply(x, b.power(minus(b, 1, x), b.negate(beta))), series));
}

// The derivative by beta, for x near 0.
Value beta_slope_beta(Builder& b, Value x, Value alpha, Value beta) {
  const Value factor = b.subtract(digamma(b, b.add(alpha, beta)), digamma(b, beta));
  Value numerator = number_like(b, 1, x), betas = numerator, slopes = zeros(b, x.type());
  Value series = b.divide(factor, alpha);
  for (int i = 1; i <= 8; ++i) {
    numerator = b.multiply(numerator, times(b, x, -1.0 / i));
    slopes = b.add(b.multiply(slopes, plus(b, beta, -i)), betas);
    betas = b.multiply(betas, plus(b, beta, -i));
    const Value both = b.add(slopes, b.multiply(factor, betas));
    series = b.add(series, b.multiply(b.divide(numerator, plus(b, alpha, i)), both));
  }
  return no_nan(b, b.negate(b.multiply(b.power(minus(b, 1, x), minus(b, 1, beta)), series)));
}

// The derivative near the mean, where the expansion below is 0 / 0.
Value beta_slope_mean(Builder& b, Value x, Value alpha, Value beta, Value total) {
  const Value beta2 = square(b, beta), rest = minus(b, 1, x);
  Value p = b.multiply(times(b, rest, 8), plus(b, times(b, beta, 135), -11));
  const auto next = [&](Value coefficient) { p = b.add(coefficient, b.multiply(alpha, p)); };
  const Value linear = b.subtract(plus(b, times(b, b.multiply(beta, rest), 1620), 453), times(b, x, 455));
  next(b.multiply(linear, beta));
  next(b.multiply(times(b, b.subtract(plus(b, times(b, beta, 180), 59), times(b, x, 90)), 3), beta2));
  const Value cubic = plus(b, b.multiply(times(b, plus(b, times(b, beta, 27), 16), 20), x), 43);
  next(b.multiply(cubic, b.multiply(beta2, beta)));
  next(times(b, b.multiply(x, square(b, beta2)), 47));
  const Value above =
      b.divide(b.multiply(plus(b, times(b, alpha, 12), 1), plus(b, times(b, beta, 12), 1)), square(b, total));
  const Value below = b.multiply(times(b, b.multiply(b.multiply(square(b, alpha), alpha), beta2), 12960),
                                 plus(b, times(b, total, 12), 1));
  return b.divide(b.multiply(b.divide(above, rest), p), below);
}

// A saddle point expansion (Rice), for alpha and beta above 6.
Value beta_slope_large(Builder& b, Value x, Value alpha, Value beta) {
  const Value total = b.add(alpha, beta), product = b.multiply(alpha, beta), over = b.divide(product, total);
  const auto stirling = [&](Value n) {
    const Value inverse = b.divide(number_like(b, 1, n), n);
    const double c[] = {1, 1.0 / 12, 1.0 / 288};
    return power_series(b, inverse, c);
  };
  const Value factor = b.multiply(b.divide(b.negate(x), b.sqrt(times(b, over, 2))),
                                  b.divide(b.multiply(stirling(alpha), stirling(beta)), stirling(total)));
  const Value less = plus(b, x, -1), difference = b.add(b.multiply(alpha, less), b.multiply(beta, x));
  Value numerator = b.add(times(b, b.multiply(square(b, alpha), less), 2), b.multiply(product, less));
  numerator = b.subtract(numerator, b.multiply(x, square(b, beta)));
  const Value width =
      b.multiply(b.sqrt(times(b, b.divide(alpha, beta), 2)), b.multiply(total, b.sqrt(total)));
  const Value term1 = b.divide(numerator, b.multiply(width, square(b, difference)));
  const Value of_alpha = b.log(b.divide(alpha, b.multiply(total, x)));
  const Value of_beta = b.log(b.divide(beta, b.multiply(total, minus(b, 1, x))));
  const Value term3 = b.divide(b.sqrt(times(b, over, 8)), difference);
  const Value base = b.add(b.multiply(beta, of_beta), b.multiply(alpha, of_alpha));
  const Value term4 = b.power(base, number_like(b, -1.5, base)), mean = b.divide(alpha, total);
  const Value term34 = b.add(term3, b.select(b.compare(x, mean, Compare::kLt), term4, b.negate(term4)));
  const Value away = b.multiply(factor, b.add(term1, b.multiply(times(b, of_alpha, 0.5), term34)));
  const Value deviation = b.divide(b.sqrt(b.divide(product, plus(b, total, 1))), total);
  const Value near = b.compare(b.abs(b.subtract(x, mean)), times(b, deviation, 0.1), Compare::kLe);
  return b.select(near, beta_slope_mean(b, x, alpha, beta, total), away);
}

// A rational correction of x (digamma(total) - digamma(alpha)) / beta, for the rest.
Value beta_slope_middle(Builder& b, Value x, Value alpha, Value beta) {
  constexpr double kAbove[3][3][4] = {{{1.003668233, -0.01061107488, -0.0657888334, 0.01201642863},
                                       {0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033},
                                       {-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013}},
                                      {{0.221950385, -0.3187676331, 0.01799915743, 0.01074823814},
                                       {-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057},
                                       {0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05}},
                                      {{-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565},
                                       {0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181},
                                       {0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05}}};
  constexpr double kBelow[3][3][4] = {
      {{1, -0.02924021934, -0.04438342661, 0.007285809825},
       {0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521},
       {-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149}},
      {{0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273},
       {0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956},
       {-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05}},
      {{0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05},
       {0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05},
       {-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06}}};
  const Value total = b.add(alpha, beta), u = b.log(x), a = b.subtract(b.log(alpha), u);
  const Value c = b.subtract(b.log(total), a);
  const auto sum = [&](const double(&table)[3][3][4]) {
    Value of_u;
    for (int i = 2; i >= 0; --i) {
      Value of_a;
      for (int j = 2; j >= 0; --j) {
        const Value p = power_series(b, c, table[i][j]);
        of_a = of_a ? b.add(b.multiply(of_a, a), p) : p;
      }
      of_u = of_u ? b.add(b.multiply(of_u, u), of_a) : of_a;
    }
    return of_u;
  };
  const Value plain = b.divide(b.multiply(x, b.subtract(digamma(b, total), digamma(b, alpha))), beta);
  return b.multiply(b.divide(sum(kAbove), sum(kBelow)), plain);
}

}  // namespace

Values dirichlet_gradient(Emit& e) {
  Builder& b = e.b;
  const Values v =
      broadcast_together(b, {read_floats(e, "x"), read_floats(e, "alpha"), read_floats(e, "total")});
  const Value x = v[0], alpha = v[1], total = v[2], beta = b.subtract(total, alpha), rest = minus(b, 1, x);
  const Value boundary = b.multiply(b.multiply(total, x), rest);
  const auto above = [&](Value value, double number) {
    return b.compare(value, number_like(b, number, value), Compare::kGt);
  };
  const Value first_half = b.not_(above(x, 0.5)), second_half = b.not_(is_less(b, x, 0.5));
  Value slope = b.select(b.and_(above(alpha, 6), above(beta, 6)), beta_slope_large(b, x, alpha, beta),
                         beta_slope_middle(b, x, alpha, beta));
  slope = b.select(b.and_(second_half, is_less(b, boundary, 0.75)),
                   b.negate(beta_slope_beta(b, rest, beta, alpha)), slope);
  slope = b.select(b.and_(first_half, is_less(b, boundary, 2.5)), beta_slope_alpha(b, x, alpha, beta), slope);
  return {to(b, slope, e.tensor("x").dtype())};
}

// ---- Poisson ----

namespace {

// Returns log k! - (k log k - k + log(2 pi k) / 2), for k >= 1, by Stirling's series.
Value stirling_rest(Builder& b, Value k) {
  const Value inverse = b.divide(number_like(b, 1, k), k), squared = square(b, inverse);
  const double c[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260};
  return b.multiply(inverse, power_series(b, squared, c));
}

// Knuth: counts the uniform draws until their product is below exp(-rate).
Value draw_small_poisson(Builder& b, Source& source, Value rate, Value wanted) {
  const Value none = zeros(b, rate.type());
  const Dims all = all_dims(rate);
  const Values init = {source.state(), wanted, none, none};
  const Values made = b.while_(
      init, [&](Builder& body, std::span<const Value> v) { return Values{body.reduce_or(v[1], all)}; },
      [&](Builder& body, std::span<const Value> v) {
        Source inside(body, v[0], Source::Kind::kThreefry);
        const Value sum = body.add(v[2], body.log(positive_uniform(body, inside, rate.type())));
        const Value goes_on = body.and_(v[1], body.compare(sum, body.negate(rate), Compare::kGt));
        return Values{inside.state(), goes_on, sum, body.select(goes_on, plus(body, v[3], 1), v[3])};
      });
  source = Source(b, made[0], Source::Kind::kThreefry);
  return made[3];
}

// Hörmann (1993), "The transformed rejection method for generating Poisson random variables", algorithm PTRS.
Value draw_large_poisson(Builder& b, Source& source, Value rate, Value wanted) {
  const Value width = plus(b, times(b, b.sqrt(rate), 2.53), 0.931);
  const Value a = plus(b, times(b, width, 0.02483), -0.059);
  const Value inverse_alpha = plus(b, b.divide(number_like(b, 1.1328, width), plus(b, width, -3.4)), 1.1239);
  const Value quick = minus(b, 0.9277, b.divide(number_like(b, 3.6224, width), plus(b, width, -2)));
  return draw_until_accepted(b, source, wanted, rate.dtype(), [&](Builder& body, Source& inside) {
    const Value u = plus(body, inside.uniform(rate.dtype(), rate.dims()), -0.5);
    const Value v = positive_uniform(body, inside, rate.type()), us = minus(body, 0.5, body.abs(u));
    const Value slope = body.add(body.divide(times(body, a, 2), us), width);
    const Value k = body.floor(plus(body, body.add(body.multiply(slope, u), rate), 0.43));
    const Value shape = body.add(body.divide(a, square(body, us)), width);
    const Value reached = body.log(body.divide(body.multiply(v, inverse_alpha), shape));
    // The log of the probability of k, from its distance to the rate: rate^k / k! itself would cancel.
    const Value at_least_1 = body.maximum(k, number_like(body, 1, k)),
                distance = body.subtract(rate, at_least_1);
    const Value entropy =
        body.subtract(body.multiply(at_least_1, body.log1p(body.divide(distance, at_least_1))), distance);
    const Value root = times(body, body.log(times(body, at_least_1, 2 * std::numbers::pi)), 0.5);
    const Value logarithm = body.subtract(body.subtract(entropy, root), stirling_rest(body, at_least_1));
    const Value limit = body.select(is_equal(body, k, 0), body.negate(rate), logarithm);
    const Value at_once = body.and_(body.not_(is_less(body, us, 0.07)), body.compare(v, quick, Compare::kLe));
    const Value refused =
        body.or_(is_less(body, k, 0), body.and_(is_less(body, us, 0.013), body.compare(v, us, Compare::kGt)));
    const Value fits = body.and_(body.not_(refused), body.compare(reached, limit, Compare::kLe));
    return Draw{k, body.or_(at_once, fits)};
  });
}

}  // namespace

Values poisson(Emit& e) {
  Builder& b = e.b;
  const Value rate = read_floats(e, "self");
  constexpr double kLarge = 10;  // the rate from which PTRS is valid
  const Value known =
      b.and_(b.compare(rate, zeros(b, rate.type()), Compare::kGe), is_less(b, rate, INFINITY));
  const Value small = b.and_(known, is_less(b, rate, kLarge)), large = b.and_(known, b.not_(small));
  Source source(e, Source::Kind::kThreefry);
  const Value few = draw_small_poisson(b, source, rate, small);
  const Value safe = b.select(large, rate, number_like(b, kLarge, rate));
  const Value count = b.select(large, draw_large_poisson(b, source, safe, large), few);
  return {to(b, b.select(known, count, number_like(b, kNaN, rate)), e.tensor("self").dtype())};
}

// ---- Binomial ----

namespace {

// Counts the geometric waiting times that fit into `count`.
Value draw_small_binomial(Builder& b, Source& source, Value count, Value p, Value wanted) {
  const Value none = zeros(b, count.type()), scale = b.log1p(b.negate(p));
  const Dims all = all_dims(count);
  const Values init = {source.state(), wanted, none, none};
  const Values made = b.while_(
      init, [&](Builder& body, std::span<const Value> v) { return Values{body.reduce_or(v[1], all)}; },
      [&](Builder& body, std::span<const Value> v) {
        Source inside(body, v[0], Source::Kind::kThreefry);
        const Value wait =
            body.ceil(body.divide(body.log(positive_uniform(body, inside, count.type())), scale));
        const Value sum = body.add(v[2], body.maximum(wait, number_like(body, 1, wait)));
        const Value goes_on = body.and_(v[1], body.compare(sum, count, Compare::kLe));
        return Values{inside.state(), goes_on, sum, body.select(goes_on, plus(body, v[3], 1), v[3])};
      });
  source = Source(b, made[0], Source::Kind::kThreefry);
  return made[3];
}

// Returns log k! by Stirling's formula at k + 1, without (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2.
Value stirling_tail(Builder& b, Value k) { return stirling_rest(b, plus(b, k, 1)); }

// Hörmann (1993), "The generation of binomial random variates", algorithm BTRS, for p <= 1/2 and count p
// >= 10.
Value draw_large_binomial(Builder& b, Source& source, Value count, Value p, Value wanted) {
  const Value rest = minus(b, 1, p), mean = b.multiply(count, p), deviation = b.sqrt(b.multiply(mean, rest));
  const Value width = plus(b, times(b, deviation, 2.53), 1.15);
  const Value a = b.add(plus(b, times(b, width, 0.0248), -0.0873), times(b, p, 0.01));
  const Value quick = minus(b, 0.92, b.divide(number_like(b, 4.2, width), width)), odds = b.divide(p, rest);
  const Value alpha = b.multiply(plus(b, b.divide(number_like(b, 5.1, width), width), 2.83), deviation);
  const Value m = b.floor(b.multiply(plus(b, count, 1), p));
  const auto tails = [&](Value k) {
    return b.add(stirling_tail(b, k), stirling_tail(b, b.subtract(count, k)));
  };
  const Value n1 = plus(b, count, 1), left_m = b.subtract(n1, m);
  return draw_until_accepted(b, source, wanted, count.dtype(), [&](Builder& body, Source& inside) {
    const Value u = plus(body, inside.uniform(count.dtype(), count.dims()), -0.5);
    const Value v = positive_uniform(body, inside, count.type()), us = minus(body, 0.5, body.abs(u));
    const Value slope = body.add(body.divide(times(body, a, 2), us), width);
    const Value drawn = body.floor(plus(body, body.add(body.multiply(slope, u), mean), 0.5));
    const Value possible =
        body.and_(body.not_(is_less(body, drawn, 0)), body.compare(drawn, count, Compare::kLe));
    const Value k = body.select(possible, drawn, m), left_k = body.subtract(n1, k);
    const Value shape = body.add(body.divide(a, square(body, us)), width);
    const Value reached = body.log(body.divide(body.multiply(v, alpha), shape));
    const auto weighted = [&](Value weight, Value ratio) { return body.multiply(weight, body.log(ratio)); };
    Value limit = weighted(plus(body, m, 0.5), body.divide(plus(body, m, 1), body.multiply(odds, left_m)));
    limit = body.add(limit, weighted(n1, body.divide(left_m, left_k)));
    limit = body.add(
        limit, weighted(plus(body, k, 0.5), body.divide(body.multiply(odds, left_k), plus(body, k, 1))));
    limit = body.add(limit, body.subtract(tails(m), tails(k)));
    const Value at_once = body.and_(body.not_(is_less(body, us, 0.07)), body.compare(v, quick, Compare::kLe));
    return Draw{k, body.and_(possible, body.or_(at_once, body.compare(reached, limit, Compare::kLe)))};
  });
}

}  // namespace

Values binomial(Emit& e) {
  Builder& b = e.b;
  const Values v = broadcast_together(b, {read_floats(e, "count"), read_floats(e, "prob")});
  const DType dtype = e.tensor("count").dtype(), compute = compute_type(dtype);
  const Value count = v[0], prob = to(b, v[1], compute), zero = zeros(b, count.type()),
              one = number_like(b, 1, zero);
  const Value flipped = b.compare(prob, number_like(b, 0.5, prob), Compare::kGt);
  const Value p = b.select(flipped, b.subtract(one, prob), prob);
  const Value known = b.and_(is_less(b, count, INFINITY), b.not_(is_nan(b, prob)));
  Value drawn = b.and_(b.compare(count, zero, Compare::kGt), b.compare(p, zero, Compare::kGt));
  drawn = b.and_(drawn, known);
  const Value many = b.not_(is_less(b, b.multiply(count, p), 10));
  const Value small = b.and_(drawn, b.not_(many)), large = b.and_(drawn, many);
  Source source(e, Source::Kind::kThreefry);
  const Value few = draw_small_binomial(b, source, count, p, small);
  const Value safe_count = b.select(large, count, number_like(b, 100, count)),
              safe_p = b.select(large, p, number_like(b, 0.5, p));
  const Value successes = b.select(large, draw_large_binomial(b, source, safe_count, safe_p, large), few);
  const Value all = b.maximum(count, zero);
  Value result = b.select(flipped, b.subtract(all, successes), successes);
  result = b.select(known, result, number_like(b, kNaN, result));
  return {to(b, result, dtype)};
}

}  // namespace sluice::ops::random
