// The exponential of floats in registers, and functions that use it. Internal to this room; only for code
// that is inlined into functions that are compiled for those registers (see lanes.h).
#pragma once

#include <cstdint>

#include "sluice/kernels/lanes.h"

namespace sluice::kernels {

// Computes exp(x) for x <= 0: 2^n exp(x - n ln 2) with the polynomial of Cephes (Moshier), function expf. NaN
// stays. L: Lanes….
template <typename L>
SLUICE_INLINE void exponential(L& x) {
  typedef uint32_t Bits __attribute__((vector_size(sizeof(L))));  // may overflow, as the bits of NaN do
  constexpr float kMinInput = -87.33f;                            // below it the result is no normal number
  // Added to a number, it leaves the nearest integer in the last bits.
  constexpr float kRounding = 12582912.f;
  constexpr uint32_t kMantissaBits = 23, kOne = 0x3f800000;
  const Bits too_small = reinterpret_cast<Bits>(x < kMinInput);
  L rounded = x * 1.44269504088896341f + kRounding;
  const Bits power = (reinterpret_cast<Bits>(rounded) << kMantissaBits) + kOne;
  rounded -= kRounding;
  const L r = x - rounded * 0.693359375f + rounded * 2.12194440e-4f;
  L p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r * r + r + 1.f) * reinterpret_cast<L>(power);
  x = reinterpret_cast<L>(reinterpret_cast<Bits>(p) & ~too_small);
}

// Computes 1 / (1 + exp(-x)), to 3 units in the last place; 0 if it would be smaller than any normal number.
template <typename L>
SLUICE_INLINE void logistic(L& x) {
  L power = x < 0.f ? x : -x;
  exponential(power);
  const L large = 1.f / (1.f + power);
  x = x < 0.f ? power * large : large;
}

// Computes tanh(x), to 4 units in the last place; near 0 with the polynomial of Cephes (Moshier), function
// tanhf.
template <typename L>
SLUICE_INLINE void tangent(L& x) {
  constexpr float kNear = 0.625f;
  const L away = x < 0.f ? -x : x;
  L power = -2.f * away;
  exponential(power);
  const L far = (1.f - power) / (1.f + power);
  const L square = x * x;
  L p = square * -5.70498872745e-3f + 2.06390887954e-2f;
  p = p * square - 5.37397155531e-2f;
  p = p * square + 1.33314422036e-1f;
  p = p * square - 3.33332819422e-1f;
  const L near = p * square * x + x;
  x = away < kNear ? near : x < 0.f ? -far : far;
}

}  // namespace sluice::kernels
