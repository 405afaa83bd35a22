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

// Against its definition in doubles. The gradient is given a mean that was rounded to f32.
TEST(LayerNorm, ALargeMeanCostsNoDigits) {
  for (const size_t columns : {1000, 65536}) {
    const size_t rows = 5;
    const Made made(rows, columns, true, 100000);
    const auto count = static_cast<double>(columns);
    std::vector<double> grad_weight(columns), normalized(columns);
    for (size_t r = 0; r < rows; ++r) {
      const float *const x = &made.x[r * columns], *const g = &made.g[r * columns];
      double mean = 0, variance = 0, sum = 0, product = 0;
      for (size_t c = 0; c < columns; ++c) mean += x[c] / count;
      for (size_t c = 0; c < columns; ++c) variance += std::pow(x[c] - mean, 2) / count;
      const double inverse = 1 / std::sqrt(variance + kEps);
      ASSERT_NEAR(made.mean[r], mean, 0.0040) << r;
      ASSERT_NEAR(made.inverse[r], inverse, 1e-5 * inverse) << r;
      for (size_t c = 0; c < columns; ++c) {
        normalized[c] = (x[c] - mean) * inverse;
        ASSERT_NEAR(made.y[r * columns + c], normalized[c] * made.weight[c] + made.bias[c], 1e-5) << c;
        sum += g[c] * made.weight[c] / count;
        product += g[c] * made.weight[c] * normalized[c] / count;
        grad_weight[c] += g[c] * normalized[c];
      }
      for (size_t c = 0; c < columns; ++c)
        ASSERT_NEAR(made.grad_x[r * columns + c],
                    (g[c] * made.weight[c] - sum - normalized[c] * product) * inverse, 1e-5)
            << r << ", " << c;
    }
    for (size_t c = 0; c < columns; ++c) ASSERT_NEAR(made.grad_weight[c], grad_weight[c], 1e-5) << c;
  }
}

TEST(LayerNorm, EqualElementsGiveTheBias) {
  constexpr size_t kRows = 5, kColumns = 777;
  for (const float value : {0.1f, 1234.567f, 10000.1f, -3e30f}) {
    const std::vector<float> x(kRows * kColumns, value), bias = noise(kColumns, 4);
    std::vector<float> y(x.size()), mean(kRows), inverse(kRows);
    layer_norm({.rows = kRows,
                .columns = kColumns,
                .x = x.data(),
                .bias = bias.data(),
                .eps = kEps,
                .y = y.data(),
                .mean = mean.data(),
                .inverse = inverse.data()});
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], bias[i % kColumns]) << value << ", " << i;
    for (const float of_row : mean) ASSERT_EQ(of_row, value);
  }
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
