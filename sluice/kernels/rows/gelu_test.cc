#include "sluice/kernels/rows/gelu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "sluice/kernels/test_noise.h"
#include "sluice/kernels/test_threads.h"

namespace sluice::kernels {
namespace {

class Gelu : public ::testing::TestWithParam<size_t> {};

TEST_P(Gelu, IsItsDefinition) {
  const std::vector<float> x = noise(GetParam(), 1, 12), g = noise(GetParam(), 2);
  std::vector<float> y = x, gradient = g;
  const TestThreads threads;
  gelu(x.size(), y.data(), y.data());  // in place
  gelu_gradient(x.size(), gradient.data(), x.data(), gradient.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const double of = x[i], distribution = 0.5 * std::erfc(-of / std::numbers::sqrt2),
                 density = std::exp(-of * of / 2) / std::sqrt(2 * std::numbers::pi);
    ASSERT_NEAR(y[i], of * distribution, 5e-7 * std::max(1., std::abs(of))) << x[i];
    ASSERT_NEAR(gradient[i], g[i] * (distribution + of * density), 1e-6) << x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Gelu, ::testing::Values(1, 15, 64, 40007));

TEST(GeluOf, WhatIsNotFiniteOrLarge) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {kInf, -kInf, NAN, 1e30f, -1e30f, 0};
  std::vector<float> y(x.size());
  gelu(x.size(), x.data(), y.data());
  EXPECT_EQ(y[0], kInf);
  EXPECT_TRUE(std::isnan(y[1])) << "infinity times 0, as in LibTorch";
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], 1e30f);
  EXPECT_EQ(y[4], 0);
  EXPECT_EQ(y[5], 0);
}

}  // namespace
}  // namespace sluice::kernels
