#include "sluice/kernels/rows/normalization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sluice/kernels/test_noise.h"
#include "sluice/kernels/test_threads.h"

namespace sluice::kernels {
namespace {

struct Scales {
  Scales(size_t channels, unsigned seed)
      : mean(noise(channels, seed)),
        inverse(noise(channels, seed + 1)),
        weight(noise(channels, seed + 2)),
        bias(noise(channels, seed + 3)) {}
  ChannelScales all() const { return {mean.data(), inverse.data(), weight.data(), bias.data()}; }
  double normalized(float x, size_t c) const {
    return (double{x} - mean[c]) * inverse[c] * weight[c] + bias[c];
  }
  std::vector<float> mean, inverse, weight, bias;
};

// Few channels and many, some that do not divide a block, more than a piece of work.
const Rows kSizes[] = {{3, 1}, {70'000, 16}, {4111, 300}, {1, 5}, {40, 2048}};

TEST(Normalize, WithAndWithoutWhatIsAdded) {
  const TestThreads threads;
  for (const Rows size : kSizes) {
    const Scales scales(size.channels, 1), of_other(size.channels, 5);
    const std::vector<float> x = noise(size.elements(), 9), other = noise(size.elements(), 10);
    const ChannelScales second = of_other.all();
    for (const int added : {0, 1, 2}) {
      std::vector<float> y(size.elements(), NAN);
      normalize(size, x.data(), scales.all(), added > 0 ? other.data() : nullptr,
                added > 1 ? &second : nullptr, y.data());
      for (size_t i = 0; i < y.size(); ++i) {
        const size_t c = i % size.channels;
        double expected = scales.normalized(x[i], c);
        if (added == 1) expected += other[i];
        if (added == 2) expected += of_other.normalized(other[i], c);
        ASSERT_NEAR(y[i], std::max(expected, 0.0), 1e-4) << size.channels << " channels, element " << i;
      }
    }
  }
}

TEST(Normalize, ANanStaysOne) {
  const std::vector<float> x = {NAN, -1}, zero = {0}, one = {1};
  std::vector<float> y(2);
  normalize({2, 1}, x.data(), {zero.data(), one.data(), one.data(), zero.data()}, nullptr, nullptr, y.data());
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 0);
}

TEST(NormalizationGradient, GatedOrNotAndInPlace) {
  const TestThreads threads;
  for (const Rows size : kSizes) {
    const Scales scales(size.channels, 1);
    const std::vector<float> x = noise(size.elements(), 9), g = noise(size.elements(), 10);
    const std::vector<float> mean_g = noise(size.channels, 11), mean_product = noise(size.channels, 12);
    for (const bool gated : {false, true}) {
      std::vector<float> made(size.elements(), NAN), in_place = g;
      for (float* const to : {made.data(), in_place.data()})
        normalization_gradient(size, to == made.data() ? g.data() : to, x.data(), scales.all(), gated,
                               mean_g.data(), mean_product.data(), to);
      for (size_t i = 0; i < made.size(); ++i) {
        const size_t c = i % size.channels;
        const double gate = scales.normalized(x[i], c);
        if (gated && std::abs(gate) < 1e-5) continue;  // rounding decides
        const double passed = gated && gate < 0 ? 0 : g[i];
        const double normalized = (double{x[i]} - scales.mean[c]) * scales.inverse[c];
        const double expected =
            (passed - mean_g[c] - normalized * mean_product[c]) * scales.inverse[c] * scales.weight[c];
        ASSERT_NEAR(made[i], expected, 1e-4 * (1 + std::abs(expected)));
      }
      ASSERT_EQ(made, in_place);
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
