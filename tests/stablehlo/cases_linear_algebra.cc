// Factorizations, complex numbers and Fourier transforms.
#include <cmath>

#include "case.h"

namespace sluice::stablehlo::testing {
namespace {

Type f64(const Dims& dims = {}) { return {DType::kF64, dims}; }

// [[4, 2], [2, 10]] = L Lᵀ with L = [[2, 0], [1, 3]].
Case factorizations() {
  Case c{
      "factorizations", {{f64({1, 2, 2}), {4, 2, 2, 10}}, {f64({1, 2, 1}), {4, 11}}}, {}, {}, 1e-12, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    const Value on_or_below = b.constant({DType::kPred, {1, 2, 2}}, "\1\0\1\1");
    const Value lower = b.select(on_or_below, b.cholesky(p[0], true), b.splat(0, f64({1, 2, 2})));
    const Value row = b.reshape(p[1], {1, 1, 2});
    return Values{lower, b.triangular_solve(lower, p[1], {}),
                  b.triangular_solve(lower, p[1], {.transpose = true}),
                  b.triangular_solve(p[0], p[1], {.lower = false, .unit = true}),
                  b.triangular_solve(lower, row, {.left = false})};
  };
  c.expected = {{2, 0, 1, 3}, {2, 3}, {1.0 / 6, 11.0 / 3}, {-18, 11}, {1.0 / 6, 11.0 / 3}};
  return c;
}

Case complex_numbers() {
  Case c{"complex_numbers", {{f32({2}), {3, 1}}, {f32({2}), {4, -2}}}, {}, {}, 1e-6, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    const Value z = b.complex(p[0], p[1]);
    const Value square = b.multiply(z, z), scaled = b.multiply(z, b.complex_splat(0, 2, z.type()));
    const Value equal = b.compare(z, b.complex_splat(3, 4, z.type()), Compare::kEq);
    return Values{b.real(square),
                  b.imaginary(square),
                  b.real(scaled),
                  b.imaginary(scaled),
                  b.abs(z),
                  b.imaginary(b.conjugate(z)),
                  b.real(b.reduce_sum(z, {0})),
                  b.real(b.convert(p[0], DType::kC128)),
                  equal};
  };
  c.expected = {{-7, -3}, {24, -4}, {-8, 4}, {6, 2}, {5, std::sqrt(5.0)}, {-4, 2}, {4}, {3, 1}, {1, 0}};
  return c;
}

// Of 1, 2, 3, 4: 10, -2 + 2i, -2, -2 - 2i.
Case transforms() {
  Case c{"transforms", {{f32({4}), {1, 2, 3, 4}}}, {}, {}, 1e-6, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    const Value half = b.fft(p[0], Fft::kRealForward, 4);
    const Value whole = b.fft(b.convert(p[0], DType::kC64), Fft::kForward, 4);
    const Value back = b.fft(whole, Fft::kInverse, 4);
    return Values{b.real(half),       b.imaginary(half), b.real(whole),
                  b.imaginary(whole), b.real(back),      b.fft(half, Fft::kRealInverse, 4)};
  };
  c.expected = {{10, -2, -2}, {0, 2, 0}, {10, -2, -2, -2}, {0, 2, 0, -2}, {1, 2, 3, 4}, {1, 2, 3, 4}};
  return c;
}

}  // namespace

std::vector<Case> linear_algebra_cases() { return {factorizations(), complex_numbers(), transforms()}; }

}  // namespace sluice::stablehlo::testing
