// Functions of complex numbers, composed of functions of their parts. XLA's own lose a NaN of the imaginary
// part (abs, log, sqrt), cancel (sin and cos of a small imaginary part, log1p near -1, expm1), or miss small
// parts of a result (rsqrt near the negative real numbers).
#pragma once

#include "sluice/ops/common.h"

namespace sluice::ops::special {

// Return sqrt(x² + y²) without overflow of the squares, infinite if either is, and the angle of (x, y). x and
// y are floats of the same type and dims. Subnormal numbers count as 0.
Value hypotenuse(Builder& b, Value x, Value y);
Value angle_of_point(Builder& b, Value y, Value x);

// Returns |z|: real for a complex z, and the builder's abs for any other number.
Value magnitude(Builder& b, Value z);

// The functions of a complex z; each branch cut is C's, on the side of the imaginary part's sign, even for
// -0.
Value complex_sqrt(Builder& b, Value z);
Value complex_rsqrt(Builder& b, Value z);
Value complex_log(Builder& b, Value z);
Value complex_log1p(Builder& b, Value z);
Value complex_sin(Builder& b, Value z);
Value complex_cos(Builder& b, Value z);
Value complex_expm1(Builder& b, Value z);
// Returns exp(exponent log(z)); for z of 0, 0 or, for an exponent below 0, infinity.
Value complex_power(Builder& b, Value z, Value exponent);

}  // namespace sluice::ops::special
