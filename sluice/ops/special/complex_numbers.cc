#include "sluice/ops/special/complex_numbers.h"

#include <cmath>

namespace sluice::ops::special {
namespace {

Value number(Builder& b, double n, Value like) { return number_like(b, n, like); }
Value times(Builder& b, Value x, double factor) { return b.multiply(x, number(b, factor, x)); }

// Returns x with ±0 in place of subnormal numbers.
Value without_subnormal(Builder& b, Value x) {
  const Value zero = b.select(sign_bit(b, x), number(b, -0.0, x), number(b, 0, x));
  return b.select(is_less(b, b.abs(x), smallest_normal(x.dtype())), zero, x);
}

// The sizes of the parts of a number: `large` is not below `small`, and `ratio` is small / large, 0 for 0.
struct Sizes {
  Value x, y, large, ratio;
  Value infinite;  // whether either is
};

Sizes sizes(Builder& b, Value x, Value y) {
  x = b.abs(x);
  y = b.abs(y);
  const Value first = b.or_(b.compare(x, y, Compare::kGe), is_nan(b, x));
  const Value large = b.select(first, x, y), small = b.select(first, y, x);
  const Value ratio = b.select(is_equal(b, large, 0), number(b, 0, x), b.divide(small, large));
  return {x, y, large, ratio, b.or_(is_equal(b, x, INFINITY), is_equal(b, y, INFINITY))};
}

// Returns sqrt(1 + ratio²), between 1 and sqrt(2).
Value stretch(Builder& b, const Sizes& s) {
  return b.sqrt(b.add(b.multiply(s.ratio, s.ratio), number(b, 1, s.ratio)));
}

Value infinite_or(Builder& b, const Sizes& s, Value otherwise) {
  return b.select(s.infinite, number(b, INFINITY, otherwise), otherwise);
}

// Returns log(sqrt(x² + y²)).
Value log_of_size(Builder& b, Value x, Value y) {
  const Sizes s = sizes(b, x, y);
  return infinite_or(b, s, b.add(b.log(s.large), times(b, b.log1p(b.multiply(s.ratio, s.ratio)), 0.5)));
}

// The parts of a square root without their signs: right of the imaginary axis the real part is `large`, left
// of it the imaginary part is.
struct Root {
  Value large, small;
};

Root root(Builder& b, Value x, Value y) {
  const Sizes s = sizes(b, x, y);
  const Value along = b.select(b.compare(s.x, s.y, Compare::kGe), number(b, 1, s.x), s.ratio);
  Value large = b.multiply(b.sqrt(s.large), b.sqrt(times(b, b.add(along, stretch(b, s)), 0.5)));
  large = infinite_or(b, s, large);
  const Value small = b.select(is_equal(b, large, 0), large, b.divide(s.y, b.add(large, large)));
  return {large, b.select(is_equal(b, s.y, INFINITY), s.y, small)};
}

// Returns the complex number of parts of these sizes. The imaginary part has the sign of y, or the other one.
Value arranged(Builder& b, Value x, Value y, const Root& r, bool conjugated) {
  const Value left = is_less(b, x, 0), negative = sign_bit(b, y);
  const Value size = b.select(left, r.large, r.small), opposite = b.negate(size);
  const Value imaginary =
      conjugated ? b.select(negative, size, opposite) : b.select(negative, opposite, size);
  return b.complex(b.select(left, r.small, r.large), imaginary);
}

// Returns factor * x, which is a zero wherever the factor is one: also for an infinite x.
Value scaled_by(Builder& b, Value factor, Value x) {
  return b.select(is_equal(b, factor, 0), factor, b.multiply(factor, x));
}

}  // namespace

Value hypotenuse(Builder& b, Value x, Value y) {
  const Sizes s = sizes(b, x, y);
  const Value size = b.multiply(s.large, stretch(b, s));
  return infinite_or(b, s, b.select(is_less(b, s.large, smallest_normal(size.dtype())), s.large, size));
}

// If both are zeros, ±1 replaces the second: XLA may divide two numbers that it knows at compile time.
Value angle_of_point(Builder& b, Value y, Value x) {
  y = without_subnormal(b, y);
  x = without_subnormal(b, x);
  const Value one = b.select(sign_bit(b, x), number(b, -1, x), number(b, 1, x));
  return b.atan2(y, b.select(b.and_(is_equal(b, y, 0), is_equal(b, x, 0)), one, x));
}

Value magnitude(Builder& b, Value z) {
  if (!stablehlo::is_complex(z.dtype())) return b.abs(z);
  return hypotenuse(b, b.real(z), b.imaginary(z));
}

Value complex_sqrt(Builder& b, Value z) {
  const Value x = b.real(z), y = b.imaginary(z);
  return arranged(b, x, y, root(b, x, y), false);
}

// The reciprocal of the root, by Smith's method.
Value complex_rsqrt(Builder& b, Value z) {
  const Value x = b.real(z), y = b.imaginary(z);
  const Root r = root(b, x, y);
  Value ratio = b.select(is_equal(b, r.small, INFINITY), number(b, 1, x), b.divide(r.small, r.large));
  ratio = b.select(is_equal(b, r.small, 0), r.small, ratio);
  const Value square = b.add(b.multiply(ratio, ratio), number(b, 1, ratio));
  const Value large = b.divide(number(b, 1, x), b.multiply(r.large, square));
  return arranged(b, x, y, {large, b.multiply(ratio, large)}, true);
}

Value complex_log(Builder& b, Value z) {
  const Value x = b.real(z), y = b.imaginary(z);
  return b.complex(log_of_size(b, x, y), angle_of_point(b, y, x));
}

// Near 0, |1 + z|² - 1 is x (x + 2) + y².
Value complex_log1p(Builder& b, Value z) {
  const Value x = b.real(z), y = b.imaginary(z), along = b.add(x, number(b, 1, x));
  const Value excess = b.add(b.multiply(x, b.add(x, number(b, 2, x))), b.multiply(y, y));
  const Value is_near = b.and_(is_less(b, b.abs(x), 0.5), is_less(b, b.abs(y), 0.5));
  const Value size = b.select(is_near, times(b, b.log1p(excess), 0.5), log_of_size(b, along, y));
  return b.complex(size, angle_of_point(b, y, along));
}

Value complex_sin(Builder& b, Value z) {
  const Value x = b.real(z), y = b.imaginary(z);
  return b.complex(scaled_by(b, b.sine(x), b.chlo("cosh", y)),
                   b.select(is_equal(b, y, 0), y, b.multiply(b.cosine(x), b.chlo("sinh", y))));
}

Value complex_cos(Builder& b, Value z) {
  const Value x = b.real(z), y = b.imaginary(z), sine = b.negate(b.sine(x));
  const Value imaginary = b.select(is_equal(b, y, 0), y, scaled_by(b, sine, b.chlo("sinh", y)));
  return b.complex(b.multiply(b.cosine(x), b.chlo("cosh", y)), imaginary);
}

// cos(y) - 1 is -2 sin²(y / 2).
Value complex_expm1(Builder& b, Value z) {
  const Value x = b.real(z), y = b.imaginary(z), half = b.sine(times(b, y, 0.5));
  const Value real = b.subtract(b.multiply(b.expm1(x), b.cosine(y)), times(b, b.multiply(half, half), 2));
  return b.complex(real, scaled_by(b, b.sine(y), b.exp(x)));
}

Value complex_power(Builder& b, Value z, Value exponent) {
  const Value log = complex_log(b, z), size = b.real(log), angle = b.imaginary(log);
  const Value grows = b.real(exponent), turns = b.imaginary(exponent);
  const Value radius = b.exp(b.subtract(b.multiply(grows, size), b.multiply(turns, angle)));
  const Value phase = b.add(scaled_by(b, turns, size), b.multiply(grows, angle));
  const Value result = b.complex(b.multiply(radius, b.cosine(phase)), scaled_by(b, b.sine(phase), radius));
  // 0 has no logarithm.
  const Value zero = number(b, 0, grows);
  const Value above = b.compare(grows, zero, Compare::kGt), below = is_less(b, grows, 0);
  const Value of_zero = b.complex(b.select(above, zero, number(b, INFINITY, grows)),
                                  b.select(above, zero, number(b, NAN, grows)));
  return b.select(b.and_(is_equal(b, z, 0), b.or_(above, below)), of_zero, result);
}

}  // namespace sluice::ops::special
