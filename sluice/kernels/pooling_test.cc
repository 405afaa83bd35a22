#include "sluice/kernels/pooling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace sluice::kernels {
namespace {

TEST(MaxPoolingGradient, GoesToTheFirstMaximum) {
  // One picture of 4×3 with two channels; windows of 3×2, stride 2×1, one row of padding.
  const Pooling p{
      .in = {4, 3}, .out = {2, 2}, .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 1}};
  const float low = -std::numeric_limits<float>::infinity();
  const std::vector<float> x = {1, 0, 5,   low, 2, 0,  //
                                1, 0, 5,   low, 2, 0,  //
                                1, 0, NAN, low, 2, 7,  //
                                1, 0, NAN, low, 2, 7};
  const std::vector<float> grad = {1, 10, 2, 20, 4, 40, 8, 80};
  std::vector<float> made(x.size(), NAN);
  max_pooling_gradient(p, 1, 2, x.data(), grad.data(), made.data());
  const std::vector<float> expected = {0, 10, 3,  0, 0, 20,  //
                                       0, 40, 0,  0, 0, 0,   //
                                       0, 0,  0,  0, 0, 80,  //
                                       0, 0,  12, 0, 0, 0};
  EXPECT_EQ(made, expected);
}

TEST(MaxPoolingGradient, WindowsOfNothingButInfinity) {
  const Pooling p{.in = {2}, .out = {2}, .kernel = {2}, .stride = {1}, .padding = {1}, .dilation = {2}};
  const float low = -std::numeric_limits<float>::infinity();
  const std::vector<float> x = {low, low}, grad = {3, 4};
  std::vector<float> made(2, NAN);
  max_pooling_gradient(p, 1, 1, x.data(), grad.data(), made.data());
  EXPECT_EQ(made, (std::vector<float>{4, 3}));  // window 0 covers place 1, window 1 place 0
}

}  // namespace
}  // namespace sluice::kernels
