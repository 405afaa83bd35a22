#include "sluice/kernels/rows/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sluice/kernels/test_noise.h"
#include "sluice/kernels/test_threads.h"

namespace sluice::kernels {
namespace {

class Softmax : public ::testing::TestWithParam<std::tuple<size_t, size_t, bool>> {};

TEST_P(Softmax, IsItsDefinition) {
  const auto [rows, columns, logarithm] = GetParam();
  const std::vector<float> x = noise(rows * columns, 1, 20), g = noise(rows * columns, 2);
  std::vector<float> y(x.size()), gradient = g;
  const TestThreads threads;
  softmax(rows, columns, x.data(), logarithm, y.data());
  softmax_gradient(rows, columns, gradient.data(), y.data(), logarithm, gradient.data());  // in place
  for (size_t r = 0; r < rows; ++r) {
    const size_t at = r * columns;
    double sum = 0, max = x[at], product = 0, of_g = 0;
    for (size_t c = 0; c < columns; ++c) max = std::max<double>(max, x[at + c]);
    for (size_t c = 0; c < columns; ++c) sum += std::exp(x[at + c] - max);
    for (size_t c = 0; c < columns; ++c) {
      const double expected = std::exp(x[at + c] - max) / sum;
      product += g[at + c] * expected;
      of_g += g[at + c];
      if (logarithm)
        ASSERT_NEAR(y[at + c], x[at + c] - max - std::log(sum), 3e-5) << r << ", " << c;
      else
        ASSERT_NEAR(y[at + c], expected, 1e-5 * expected + 2e-38) << r << ", " << c;
    }
    for (size_t c = 0; c < columns; ++c) {
      const double expected = std::exp(x[at + c] - max) / sum;
      const double of_x = logarithm ? g[at + c] - expected * of_g : expected * (g[at + c] - product);
      ASSERT_NEAR(gradient[at + c], of_x, 2e-5 + 1e-8 * static_cast<double>(columns) + 1e-5 * std::abs(of_x))
          << r << ", " << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Softmax,
                         ::testing::Combine(::testing::Values(1, 37),
                                            ::testing::Values(1, 10, 16, 128, 20001), ::testing::Bool()));

TEST(SoftmaxOf, WhatIsNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {0, -kInf, 0, -200, NAN, 1, 1, 1, -kInf, -kInf, -kInf, -kInf};
  std::vector<float> y(x.size());
  softmax(3, 4, x.data(), false, y.data());
  EXPECT_FLOAT_EQ(y[0], 0.5);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[3], 0);
  for (size_t i = 4; i < y.size(); ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
  softmax(1, 4, x.data(), true, y.data());
  EXPECT_EQ(y[1], -kInf);
  EXPECT_FLOAT_EQ(y[3], -200 - std::log(2.f));
}

}  // namespace
}  // namespace sluice::kernels
