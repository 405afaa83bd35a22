#include "sluice/data/augment/mix.h"

#include <gmock/gmock.h>

#include <cmath>

namespace sluice::data {
namespace {

// Row i is filled with the level 10 · i, its label is i; the last row is padding.
template <typename T>
Batch batch_of(std::int64_t rows, ElementType type) {
  Batch batch;
  batch.count = rows - 1;
  batch.image = Array::zeros(type, {rows, 3, 8, 6});
  batch.label = Array::zeros(ElementType::kInt64, {rows});
  batch.mask = Array::zeros(ElementType::kBool, {rows});
  for (std::int64_t i = 0; i < batch.count; ++i) {
    std::fill_n(batch.image.data<T>() + i * 144, 144, static_cast<T>(10 * i));
    batch.label.data<std::int64_t>()[i] = i;
    batch.mask.data<bool>()[i] = true;
    batch.keys.push_back("key" + std::to_string(i));
  }
  batch.columns = {{batch.image, {}}, {batch.label, {}}};
  return batch;
}

TEST(Mix, MixupBlendsWithTheRowBefore) {
  Batch batch = batch_of<float>(6, ElementType::kFloat32);
  ASSERT_TRUE(mix_rows(batch, {0.4, 0}, 1, 2));
  for (std::int64_t i = 0; i < 5; ++i) {
    const float share = batch.own_share.data<float>()[i];
    EXPECT_GE(share, 0);
    EXPECT_LE(share, 1);
    const std::int64_t other = (i + 4) % 5;
    EXPECT_EQ(batch.other_label.data<std::int64_t>()[i], other);
    const float expected = share * 10 * static_cast<float>(i) + (1 - share) * 10 * static_cast<float>(other);
    for (int k = 0; k < 144; ++k) EXPECT_NEAR(batch.image.data<float>()[i * 144 + k], expected, 1e-4);
  }
  EXPECT_EQ(batch.own_share.data<float>()[5], 1);
  EXPECT_EQ(batch.image.data<float>()[5 * 144], 0);
  ASSERT_EQ(batch.columns.size(), 4u);
  EXPECT_EQ(batch.columns[3].array.describe(), "float32 [6]");
  EXPECT_EQ(batch.columns[0].array.data<void>(), batch.image.data<void>());
}

TEST(Mix, CutmixKeepsTheShareThatIsLeft) {
  Batch batch = batch_of<std::uint8_t>(20, ElementType::kUint8);
  ASSERT_TRUE(mix_rows(batch, {0, 1.0}, 1, 2));
  int cut = 0;
  for (std::int64_t i = 0; i < 19; ++i) {
    const auto* row = batch.image.data<std::uint8_t>() + i * 144;
    const auto own = std::count(row, row + 144, static_cast<std::uint8_t>(10 * i));
    const auto other = std::count(row, row + 144, static_cast<std::uint8_t>(10 * ((i + 18) % 19)));
    EXPECT_EQ(own + other, 144);
    EXPECT_FLOAT_EQ(batch.own_share.data<float>()[i], static_cast<float>(own) / 144);
    cut += other > 0;
  }
  EXPECT_GT(cut, 5);
}

TEST(Mix, DependsOnSeedEpochAndSampleAlone) {
  const auto shares = [](std::uint64_t seed, std::int64_t epoch) {
    Batch batch = batch_of<std::uint8_t>(9, ElementType::kUint8);
    EXPECT_TRUE(mix_rows(batch, {0.2, 1.0}, seed, epoch));
    const float* first = batch.own_share.data<float>();
    return std::vector<float>(first, first + 8);
  };
  EXPECT_EQ(shares(1, 2), shares(1, 2));
  EXPECT_NE(shares(1, 2), shares(2, 2));
  EXPECT_NE(shares(1, 2), shares(1, 3));
}

TEST(Mix, BetaHasItsMeanAndVariance) {
  for (const double alpha : {0.05, 0.2, 1.0, 3.0}) {
    base::Random random({static_cast<std::uint64_t>(alpha * 100)});
    double sum = 0, squares = 0;
    constexpr int kDraws = 40'000;
    for (int i = 0; i < kDraws; ++i) {
      const double x = draw_beta(alpha, random);
      ASSERT_TRUE(x >= 0 && x <= 1);
      sum += x;
      squares += (x - 0.5) * (x - 0.5);
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.01) << alpha;
    EXPECT_NEAR(squares / kDraws, 1 / (4 * (2 * alpha + 1)), 0.006) << alpha;
  }
}

TEST(Mix, NeedsImagesAndLabels) {
  Batch batch = batch_of<float>(3, ElementType::kFloat32);
  batch.label = Array();
  EXPECT_THAT(mix_rows(batch, {1, 0}, 0, 0).error().what(), testing::HasSubstr("no labels"));
}

}  // namespace
}  // namespace sluice::data
