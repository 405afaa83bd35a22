#include "sluice/kernels/rows/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sluice/kernels/test_noise.h"
#include "sluice/kernels/test_threads.h"

namespace sluice::kernels {
namespace {

constexpr float kEps = 1e-5f;

// What the kernels make, of rows whose mean is `mean`.
struct Made {
  Made(size_t rows, size_t columns, bool affine, float mean_of_x = 3)
      : x(noise(rows * columns, 1, 1, mean_of_x)),
        g(noise(rows * columns, 2, 1, 0.1f)),
        weight(affine ? noise(columns, 3, 1, 1) : std::vector<float>()),
        bias(affine ? noise(columns, 4) : std::vector<float>()),
        y(x.size()),
        mean(rows),
        inverse(rows),
        grad_x(g),
        grad_weight(columns, NAN),
        grad_bias(columns, NAN) {
    const float* const weights = affine ? weight.data() : nullptr;
    layer_norm({.rows = rows,
                .columns = columns,
                .x = x.data(),
                .weight = weights,
                .bias = affine ? bias.data() : nullptr,
                .eps = kEps,
                .y = y.data(),
                .mean = mean.data(),
                .inverse = inverse.data()});
    layer_norm_gradient({.rows = rows,
                         .columns = columns,
                         .grad_y = grad_x.data(),  // in place
                         .x = x.data(),
                         .mean = mean.data(),
                         .inverse = inverse.data(),
                         .weight = weights,
                         .grad_x = grad_x.data(),
                         .grad_weight = affine ? grad_weight.data() : nullptr,
                         .grad_bias = affine ? grad_bias.data() : nullptr});
  }
  std::vector<float> x, g, weight, bias, y, mean, inverse, grad_x, grad_weight, grad_bias;
};

class LayerNormOf : public ::testing::TestWithParam<std::tuple<size_t, size_t, bool>> {};

TEST_P(LayerNormOf, IsItsDefinition) {
  const auto [rows, columns, affine] = GetParam();
  const TestThreads threads;
  const Made made(rows, columns, affine);
  const auto count = static_cast<double>(columns);
  std::vector<double> grad_weight(columns), grad_bias(columns), normalized(columns);
  for (size_t r = 0; r < rows; ++r) {
    const size_t at = r * columns;
    double mean = 0, variance = 0, sum = 0, product = 0;
    for (size_t c = 0; c < columns; ++c) mean += made.x[at + c] / count;
    for (size_t c = 0; c < columns; ++c) variance += std::pow(made.x[at + c] - mean, 2) / count;
    const double inverse = 1 / std::sqrt(variance + kEps);
    ASSERT_NEAR(made.mean[r], mean, 1e-5);
    ASSERT_NEAR(made.inverse[r], inverse, 1e-5 * inverse);
    for (size_t c = 0; c < columns; ++c) {
      normalized[c] = (made.x[at + c] - mean) * inverse;
      const double weight = affine ? made.weight[c] : 1, bias = affine ? made.bias[c] : 0;
      ASSERT_NEAR(made.y[at + c], normalized[c] * weight + bias, 1e-4) << r << ", " << c;
      sum += made.g[at + c] * weight / count;
      product += made.g[at + c] * weight * normalized[c] / count;
      grad_weight[c] += made.g[at + c] * normalized[c];
      grad_bias[c] += made.g[at + c];
    }
    for (size_t c = 0; c < columns; ++c) {
      const double scaled = made.g[at + c] * (affine ? made.weight[c] : 1);
      const double expected = (scaled - sum - normalized[c] * product) * inverse;
      ASSERT_NEAR(made.grad_x[at + c], expected, 1e-4 + 1e-6 * inverse * inverse) << r << ", " << c;
    }
  }
  for (size_t c = 0; affine && c < columns; ++c) {
    ASSERT_NEAR(made.grad_weight[c], grad_weight[c], 1e-4) << c;
    ASSERT_NEAR(made.grad_bias[c], grad_bias[c], 1e-4) << c;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, LayerNormOf,
                         ::testing::Combine(::testing::Values(1, 7, 403),
                                            ::testing::Values(1, 3, 16, 27, 256, 20001), ::testing::Bool()));

TEST(LayerNorm, ALargeMeanCostsNoDigits) {
  const Made made(5, 1000, true, 10000);
  for (size_t r = 0; r < 5; ++r) ASSERT_NEAR(made.inverse[r], 1, 0.1) << r;
}

TEST(LayerNorm, SumsDoNotDependOnTheThreads) {
  const Made alone(403, 300, true);
  const TestThreads threads;
  const Made together(403, 300, true);
  EXPECT_EQ(alone.grad_weight, together.grad_weight);
  EXPECT_EQ(alone.grad_bias, together.grad_bias);
}

}  // namespace
}  // namespace sluice::kernels
