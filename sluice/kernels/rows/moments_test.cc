#include "sluice/kernels/rows/moments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "sluice/kernels/test_threads.h"

namespace sluice::kernels {
namespace {

// Rows of noise around a mean that is different for each channel.
std::vector<float> noise(size_t rows, size_t channels, float offset) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(rows * channels);
  for (size_t i = 0; i < x.size(); ++i) x[i] = offset * static_cast<float>(i % channels + 1) + normal(random);
  return x;
}

TEST(Moments, AreThoseOfEachChannel) {
  for (const auto& [rows, channels, offset] :
       {std::tuple<size_t, size_t, float>{5000, 16, 0}, {1, 3, 1}, {700, 100, 1000}}) {
    const std::vector<float> x = noise(rows, channels, offset);
    std::vector<float> mean(channels), variance(channels);
    moments({rows, channels}, x.data(), mean.data(), variance.data());
    for (size_t c = 0; c < channels; ++c) {
      double sum = 0, squares = 0;
      for (size_t r = 0; r < rows; ++r) sum += x[r * channels + c];
      const double expected = sum / static_cast<double>(rows);
      for (size_t r = 0; r < rows; ++r) squares += std::pow(x[r * channels + c] - expected, 2);
      EXPECT_NEAR(mean[c], expected, 1e-6 * std::abs(expected) + 1e-6);
      EXPECT_NEAR(variance[c], squares / static_cast<double>(rows), 1e-4);
    }
  }
}

TEST(Moments, SumsOfGradients) {
  // Rows that are summed side by side, an odd number of rows, and channels that fill a row alone.
  for (const auto& [rows, channels] : {std::pair<size_t, size_t>{5000, 24}, {4999, 16}, {300, 500}}) {
    const std::vector<float> x = noise(rows, channels, 1), g = noise(rows, channels, 0);
    const std::vector<float> mean(channels, 2), inverse(channels, 0.5f), weight(channels, -3),
        bias(channels, 1);
    for (const bool gated : {false, true}) {
      std::vector<float> sum(channels), product(channels);
      channel_sums({rows, channels}, g.data(), x.data(),
                   {mean.data(), inverse.data(), weight.data(), bias.data()}, gated, sum.data(),
                   product.data());
      for (size_t c = 0; c < channels; ++c) {
        double expected = 0, expected_product = 0;
        for (size_t r = 0; r < rows; ++r) {
          const double normalized = (x[r * channels + c] - 2.0) * 0.5, value = g[r * channels + c];
          if (gated && normalized * -3 + 1 <= 0) continue;
          expected += value;
          expected_product += value * normalized;
        }
        EXPECT_NEAR(sum[c], expected, 1e-5 * static_cast<double>(rows));
        EXPECT_NEAR(product[c], expected_product, 1e-4 * static_cast<double>(rows));
      }
    }
  }
}

TEST(Moments, DoNotDependOnTheThreads) {
  const size_t rows = 40000, channels = 8;
  const std::vector<float> x = noise(rows, channels, 3);
  std::vector<float> mean(channels), variance(channels), again(channels), variance_again(channels);
  moments({rows, channels}, x.data(), mean.data(), variance.data());
  {
    const TestThreads threads;
    moments({rows, channels}, x.data(), again.data(), variance_again.data());
  }
  EXPECT_EQ(mean, again);
  EXPECT_EQ(variance, variance_again);
}

TEST(SumOfRows, IsThatOfEachColumn) {
  for (const auto& [rows, columns] :
       {std::pair<size_t, size_t>{5000, 16}, {1, 3}, {2047, 1000}, {30, 70000}}) {
    const std::vector<float> x = noise(rows, columns, 0.5f);
    std::vector<float> sum(columns);
    const TestThreads threads;
    sum_of_rows({rows, columns}, x.data(), sum.data());
    for (size_t c = 0; c < columns; c += 1 + columns / 50) {
      double expected = 0;
      for (size_t r = 0; r < rows; ++r) expected += x[r * columns + c];
      EXPECT_NEAR(sum[c], expected, 1e-6 * std::abs(expected) + 1e-3);
    }
  }
}

TEST(SumOfPlanes, IsThatOfEachChannel) {
  struct {
    size_t images, channels, pixels;
  } constexpr kSizes[] = {{3, 5, 1}, {2, 3, 63}, {4, 16, 1000}, {1, 2, 70'000}, {7, 1, 8192}};
  for (const auto& [images, channels, pixels] : kSizes) {
    const std::vector<float> x = noise(images * channels, pixels, 0.5f);
    std::vector<float> sum(channels, NAN);
    const TestThreads threads;
    sum_of_planes(images, channels, pixels, x.data(), sum.data());
    for (size_t c = 0; c < channels; ++c) {
      double expected = 0;
      for (size_t n = 0; n < images; ++n)
        for (size_t p = 0; p < pixels; ++p) expected += x[(n * channels + c) * pixels + p];
      EXPECT_NEAR(sum[c], expected, 1e-6 * std::abs(expected) + 1e-3);
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
