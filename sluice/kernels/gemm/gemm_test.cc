#include "sluice/kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sluice/kernels/gemm/gemm_panels.h"
#include "sluice/kernels/gemm/gemm_thin.h"
#include "sluice/kernels/test_noise.h"
#include "sluice/kernels/test_threads.h"

namespace sluice::kernels {
namespace {

using stablehlo::ProductCall;

void expect_definition(const ProductCall& p, const Gemm& kernel) {
  const auto batch = static_cast<size_t>(p.batch), m = static_cast<size_t>(p.m), k = static_cast<size_t>(p.k),
             n = static_cast<size_t>(p.n);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> a(batch * m * k), b(batch * k * n), c(batch * m * n, NAN);
  for (float& value : a) value = uniform(random);
  for (float& value : b) value = uniform(random);
  // Something is done to each number once, when it is there.
  const float bias = batch == 1 ? 3 : 0;
  const auto add_bias = [&](const Piece& piece) {
    EXPECT_EQ(piece.first, c.data() + piece.row * n + piece.column);
    for (size_t row = 0; row < piece.rows; ++row)
      for (size_t i = 0; i < piece.columns; ++i) piece.first[row * piece.step + i] += bias;
  };
  ASSERT_TRUE(batch == 1 ? kernel.run(a.data(), b.data(), c.data(), add_bias)
                         : kernel.run(a.data(), b.data(), c.data()));
  for (size_t i = 0; i < c.size(); ++i) {
    const size_t of = i / (m * n), row = i / n % m, column = i % n;
    double expected = bias;
    for (size_t s = 0; s < k; ++s)
      expected += double{a[of * m * k + (p.transposed_a ? s * m + row : row * k + s)]} *
                  b[of * k * n + (p.transposed_b ? column * k + s : s * n + column)];
    ASSERT_NEAR(c[i], expected, 1e-4) << i;
  }
}

class EveryGemm : public ::testing::TestWithParam<ProductCall> {};

TEST_P(EveryGemm, IsItsDefinition) {
  const ProductCall p = GetParam();
  if (!has_gemm(p)) GTEST_SKIP() << "no library, or none of its kernels is for this CPU";
  const TestThreads threads;
  expect_definition(p, *find_gemm(p));
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryGemm,
    ::testing::Values(  // Too small to be divided among threads.
        ProductCall{.m = 65, .k = 70, .n = 33}, ProductCall{.m = 65, .k = 70, .n = 33, .transposed_a = true},
        ProductCall{.m = 65, .k = 70, .n = 33, .transposed_b = true},
        ProductCall{.batch = 3, .m = 40, .k = 32, .n = 48},
        // Few rows of one side, all along K.
        ProductCall{.m = 48, .k = 4100, .n = 1, .transposed_b = true},
        ProductCall{.m = 45, .k = 700, .n = 3, .transposed_b = true},
        ProductCall{.m = 5, .k = 259, .n = 60, .transposed_b = true},
        ProductCall{.m = 8, .k = 5000, .n = 23, .transposed_b = true},
        ProductCall{.batch = 3, .m = 40, .k = 32, .n = 48, .transposed_b = true},
        ProductCall{.batch = 3, .m = 40, .k = 32, .n = 48, .transposed_a = true},
        // Divided by rows, by columns, by K, by matrices.
        ProductCall{.m = 301, .k = 64, .n = 65},
        ProductCall{.m = 301, .k = 64, .n = 65, .transposed_a = true},
        ProductCall{.m = 301, .k = 1100, .n = 80, .transposed_a = true},
        ProductCall{.m = 301, .k = 64, .n = 65, .transposed_b = true},
        ProductCall{.m = 32, .k = 250, .n = 165, .transposed_b = true},
        ProductCall{.m = 32, .k = 250, .n = 165, .transposed_a = true, .transposed_b = true},
        ProductCall{.m = 30, .k = 1030, .n = 48},
        ProductCall{.m = 30, .k = 1030, .n = 48, .transposed_a = true},
        ProductCall{.batch = 17, .m = 40, .k = 33, .n = 48},
        ProductCall{.batch = 17, .m = 40, .k = 33, .n = 48, .transposed_a = true}));

// Those that find_gemm chooses are the same, but longer.
class EveryThinGemm : public ::testing::TestWithParam<ProductCall> {};

TEST_P(EveryThinGemm, IsItsDefinition) {
  const TestThreads threads;
  const auto kernel = make_thin_gemm(GetParam());
  if (!kernel) GTEST_SKIP() << "too few registers";
  expect_definition(GetParam(), *kernel);
}

INSTANTIATE_TEST_SUITE_P(All, EveryThinGemm,
                         ::testing::Values(ProductCall{.m = 360, .k = 64, .n = 64},
                                           // Rows and a part of K are left over.
                                           ProductCall{.m = 365, .k = 140, .n = 128},
                                           ProductCall{.m = 4, .k = 7, .n = 64, .transposed_b = true},
                                           ProductCall{.m = 365, .k = 140, .n = 128, .transposed_b = true},
                                           ProductCall{.m = 66, .k = 1200, .n = 64, .transposed_a = true},
                                           ProductCall{.m = 130, .k = 331, .n = 128, .transposed_a = true},
                                           // Made transposed.
                                           ProductCall{.m = 64, .k = 1203, .n = 96, .transposed_a = true},
                                           ProductCall{.m = 64, .k = 5000, .n = 80, .transposed_a = true}));

class EveryPanelGemm : public ::testing::TestWithParam<ProductCall> {};

TEST_P(EveryPanelGemm, IsItsDefinition) {
  const TestThreads threads;
  const auto kernel = make_panel_gemm(GetParam());
  if (!kernel) GTEST_SKIP() << "no registers for it";
  expect_definition(GetParam(), *kernel);
}

// Without a c each number is in one piece, which is seen once.
TEST_P(EveryPanelGemm, IsMadeInPieces) {
  const TestThreads threads;
  const ProductCall p = GetParam();
  const auto kernel = make_panel_gemm(p);
  if (!kernel) GTEST_SKIP() << "no registers for it";
  const auto m = static_cast<size_t>(p.m), k = static_cast<size_t>(p.k), n = static_cast<size_t>(p.n);
  std::vector<float> a = noise(m * k, 1), b = noise(k * n, 2), whole(m * n), collected(m * n, 0);
  ASSERT_TRUE(kernel->run(a.data(), b.data(), whole.data()));
  ASSERT_TRUE(kernel->run(a.data(), b.data(), nullptr, [&](const Piece& piece) {
    for (size_t row = 0; row < piece.rows; ++row)
      for (size_t i = 0; i < piece.columns; ++i)
        collected[(piece.row + row) * n + piece.column + i] += piece.first[row * piece.step + i];
  }));
  EXPECT_EQ(collected, whole);
}

// Rows, columns and a part of K are left over by the tiles and by the blocks.
INSTANTIATE_TEST_SUITE_P(All, EveryPanelGemm,
                         ::testing::Values(ProductCall{.m = 301, .k = 270, .n = 65},
                                           ProductCall{.m = 301, .k = 270, .n = 65, .transposed_a = true},
                                           ProductCall{.m = 50, .k = 270, .n = 333, .transposed_a = true},
                                           ProductCall{.m = 5, .k = 1031, .n = 19, .transposed_a = true},
                                           // Made transposed, by columns, in a few sums.
                                           ProductCall{.m = 70, .k = 270, .n = 333, .transposed_b = true},
                                           ProductCall{.m = 13, .k = 40, .n = 301, .transposed_b = true},
                                           ProductCall{.m = 50, .k = 270, .n = 333},
                                           ProductCall{.m = 33, .k = 2031, .n = 40}));

TEST(Product, VectorsHaveNoPanels) {
  EXPECT_EQ(make_panel_gemm({.m = 1, .k = 512, .n = 512}), nullptr);
  EXPECT_EQ(make_panel_gemm({.m = 512, .k = 512, .n = 1}), nullptr);
}

TEST(Product, ThinOnesAreLongAndSmall) {
  EXPECT_TRUE(is_thin({.m = 50176, .k = 64, .n = 256}));
  EXPECT_TRUE(is_thin({.m = 256, .k = 50176, .n = 64, .transposed_a = true}));
  EXPECT_FALSE(is_thin({.m = 3136, .k = 64, .n = 256}));
  EXPECT_FALSE(is_thin({.m = 50176, .k = 256, .n = 256}));
  EXPECT_FALSE(is_thin({.m = 50176, .k = 16, .n = 256}));
  EXPECT_FALSE(is_thin({.m = 64, .k = 50176, .n = 256}));
  EXPECT_EQ(make_thin_gemm({.m = 50176, .k = 64, .n = 65}), nullptr);
  EXPECT_EQ(make_thin_gemm({.m = 64, .k = 50176, .n = 96, .transposed_a = true, .transposed_b = true}),
            nullptr);
}

TEST(Product, SmallOnesAreLeftToTheCompiler) { EXPECT_FALSE(has_gemm({.m = 8, .k = 8, .n = 8})); }

}  // namespace
}  // namespace sluice::kernels
