#include "sluice/kernels/product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sluice/kernels/test_threads.h"

namespace sluice::kernels {
namespace {

using stablehlo::ProductCall;

class EveryProduct : public ::testing::TestWithParam<ProductCall> {};

TEST_P(EveryProduct, IsItsDefinition) {
  const ProductCall p = GetParam();
  if (!has_product(p)) GTEST_SKIP() << "no library, or none of its kernels is for this CPU";
  const auto batch = static_cast<size_t>(p.batch), m = static_cast<size_t>(p.m), k = static_cast<size_t>(p.k),
             n = static_cast<size_t>(p.n);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> a(batch * m * k), b(batch * k * n), c(batch * m * n, NAN);
  for (float& value : a) value = uniform(random);
  for (float& value : b) value = uniform(random);
  const TestThreads threads;
  ASSERT_TRUE(run_product(*find_product(p), a.data(), b.data(), c.data()));
  for (size_t i = 0; i < c.size(); ++i) {
    const size_t of = i / (m * n), row = i / n % m, column = i % n;
    double expected = 0;
    for (size_t s = 0; s < k; ++s)
      expected += double{a[of * m * k + (p.transposed_a ? s * m + row : row * k + s)]} *
                  b[of * k * n + (p.transposed_b ? column * k + s : s * n + column)];
    ASSERT_NEAR(c[i], expected, 1e-4) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryProduct,
    ::testing::Values(  // Too small to be divided among threads.
        ProductCall{.m = 65, .k = 70, .n = 33}, ProductCall{.m = 65, .k = 70, .n = 33, .transposed_a = true},
        ProductCall{.m = 65, .k = 70, .n = 33, .transposed_b = true},
        ProductCall{.batch = 3, .m = 40, .k = 32, .n = 48},
        ProductCall{.batch = 3, .m = 40, .k = 32, .n = 48, .transposed_b = true},
        ProductCall{.batch = 3, .m = 40, .k = 32, .n = 48, .transposed_a = true},
        // Divided by rows, by columns, by inner places, by matrices.
        ProductCall{.m = 301, .k = 64, .n = 65},
        ProductCall{.m = 301, .k = 64, .n = 65, .transposed_a = true},
        ProductCall{.m = 301, .k = 64, .n = 65, .transposed_b = true},
        ProductCall{.m = 32, .k = 250, .n = 165, .transposed_b = true},
        ProductCall{.m = 32, .k = 250, .n = 165, .transposed_a = true, .transposed_b = true},
        ProductCall{.m = 30, .k = 1030, .n = 48},
        ProductCall{.m = 30, .k = 1030, .n = 48, .transposed_a = true},
        ProductCall{.batch = 17, .m = 40, .k = 33, .n = 48},
        ProductCall{.batch = 17, .m = 40, .k = 33, .n = 48, .transposed_a = true}));

TEST(Product, SmallOnesAreLeftToTheCompiler) { EXPECT_FALSE(has_product({.m = 8, .k = 8, .n = 8})); }

}  // namespace
}  // namespace sluice::kernels
