#include "sluice/kernels/rows/pooling.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sluice/kernels/test_threads.h"

namespace sluice::kernels {
namespace {

constexpr float low = -std::numeric_limits<float>::infinity();

// One image of 4×3 with two channels; windows of 3×2, stride 2×1, one row of padding.
const Pooling p{
    .in = {4, 3}, .out = {2, 2}, .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 1}};
const std::vector<float> x = {1, 0, 5,   low, 2, 0,  //
                              1, 0, 5,   low, 2, 0,  //
                              1, 0, NAN, low, 2, 7,  //
                              1, 0, NAN, low, 2, 7};

TEST(MaxPooling, TakesTheMaximumOrTheNan) {
  std::vector<float> images = x;
  images.insert(images.end(), x.begin(), x.end());  // a second one, upside down
  for (size_t row = 0; row < 4; ++row)
    std::copy_n(x.begin() + static_cast<int64_t>(row * 6), 6,
                images.begin() + static_cast<int64_t>(24 + (3 - row) * 6));
  std::vector<float> made(16, 0);
  {
    const TestThreads threads;
    max_pooling(p, 2, 2, images.data(), made.data());
  }
  const std::vector<float> expected = {5,   0, 5,   0, NAN, 0, NAN, 7,  //
                                       NAN, 0, NAN, 7, NAN, 0, NAN, 7};
  EXPECT_THAT(made, ::testing::Pointwise(::testing::NanSensitiveFloatEq(), expected));
}

TEST(MaxPoolingGradient, GoesToTheFirstMaximum) {
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
  const Pooling pairs{.in = {2}, .out = {2}, .kernel = {2}, .stride = {1}, .padding = {1}, .dilation = {2}};
  const std::vector<float> nothing = {low, low}, grad = {3, 4};
  std::vector<float> made(2, NAN);
  max_pooling_gradient(pairs, 1, 1, nothing.data(), grad.data(), made.data());
  EXPECT_EQ(made, (std::vector<float>{4, 3}));  // window 0 covers place 1, window 1 place 0
}

}  // namespace
}  // namespace sluice::kernels
