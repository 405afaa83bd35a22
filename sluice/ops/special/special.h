// The part of the pointwise family that has its own file: functions that are composed of others here.
#pragma once

#include "sluice/ops/common.h"

namespace sluice::ops::special {

Values gcd(Emit& e);
Values lcm(Emit& e);
Values bessel_i0(Emit& e);
Values bessel_i0e(Emit& e);
Values bessel_i1(Emit& e);
Values bessel_i1e(Emit& e);
Values log_normal_integral(Emit& e);
Values next_after(Emit& e);
// cephes.cc
Values bessel_j0(Emit& e);
Values bessel_j1(Emit& e);
Values bessel_y0(Emit& e);
Values bessel_y1(Emit& e);
Values bessel_k0(Emit& e);
Values bessel_k1(Emit& e);
Values scaled_bessel_k0(Emit& e);
Values scaled_bessel_k1(Emit& e);
Values spherical_bessel_j0(Emit& e);
Values inverse_normal_integral(Emit& e);
// incomplete_gamma.cc
Values incomplete_gamma_lower(Emit& e);
Values incomplete_gamma_upper(Emit& e);
Values scaled_complementary_error(Emit& e);

// Evaluate a polynomial, from the highest power to the lowest, and the ratio of two polynomials.
Value polynomial(Builder& b, Value x, std::span<const double> coefficients);
Value ratio(Builder& b, Value x, std::span<const double> over, std::span<const double> under);
// Evaluate half the sum of a Chebyshev series, as Cephes does, and the modified Bessel functions I.
Value chebyshev(Builder& b, Value x, std::span<const double> coefficients);
Value i0(Builder& b, Value x);
Value i1(Builder& b, Value x);

}  // namespace sluice::ops::special
