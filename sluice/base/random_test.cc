#include "sluice/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace sluice::base {
namespace {

// Published outputs: SplitMix64 from the state 1234567, xoshiro256** from the state {1, 2, 3, 4}.
TEST(Random, MatchesPublishedSequences) {
  EXPECT_EQ(mix64(1234567), 6457827717110365317u);
  EXPECT_EQ(mix64(1234567 + 0x9E3779B97F4A7C15ull), 3203168211198807973u);
  Random random(Random::State{{1, 2, 3, 4}});
  EXPECT_EQ(random(), 11520u);
  EXPECT_EQ(random(), 0u);
  EXPECT_EQ(random(), 1509978240u);
  EXPECT_EQ(random(), 1215971899390074240u);
}

TEST(Random, KeysDecide) {
  EXPECT_EQ(Random({1, 2, 3})(), Random({1, 2, 3})());
  EXPECT_NE(Random({1, 2, 3})(), Random({1, 3, 2})());
  EXPECT_NE(Random({1, 2})(), Random({1, 2, 0})());
  EXPECT_NE(key("shard-0000"), key("shard-0001"));
}

TEST(Random, StateResumes) {
  Random first({7});
  for (int i = 0; i < 10; ++i) first();
  Random second(first.state());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(first(), second());
}

TEST(Random, BelowIsUniform) {
  Random random({42});
  std::array<int, 6> counts{};
  for (int i = 0; i < 60000; ++i) ++counts[random.below(6)];
  double chi_square = 0;
  for (int count : counts) chi_square += (count - 10000.0) * (count - 10000.0) / 10000.0;
  EXPECT_LT(chi_square, 20.5);  // 0.1 % with 5 degrees of freedom
  EXPECT_EQ(random.below(1), 0u);
  EXPECT_EQ(random.below(0), 0u);
}

TEST(Random, UniformStaysInside) {
  Random random({3});
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double x = random.uniform(-2, 4);
    ASSERT_GE(x, -2);
    ASSERT_LT(x, 4);
    sum += x;
  }
  EXPECT_NEAR(sum / 10000, 1.0, 0.1);
}

TEST(Random, ShuffleIsAPermutation) {
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  const std::vector<int> original = items;
  Random random({5});
  random.shuffle(items);
  EXPECT_NE(items, original);
  std::sort(items.begin(), items.end());
  EXPECT_EQ(items, original);
}

}  // namespace
}  // namespace sluice::base
