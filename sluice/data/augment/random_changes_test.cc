#include "sluice/data/augment/random_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sluice/data/augment/affine.h"
#include "sluice/data/augment/color.h"
#include "sluice/data/dataset.h"
#include "sluice/data/decode/decode.h"
#include "sluice/data/test_support.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The pixels are compared with Pillow's by tests/python/augment_oracle.py.

Pixels noise(std::int64_t height, std::int64_t width, std::int64_t channels = 3) {
  base::Random random({5});
  Pixels pixels{height, width, channels, {}};
  for (std::int64_t i = 0; i < height * width * channels; ++i)
    pixels.bytes.push_back(static_cast<std::uint8_t>(random.below(256)));
  return pixels;
}

Pixels grey(std::uint8_t level) { return {1, 1, 1, {level}}; }

TEST(ColorJitter, DrawsFactorsAsTorchvision) {
  base::Random random({1});
  double sum = 0;
  int lowest = 255, highest = 0;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    Pixels pixels = grey(100);
    jitter_colors(pixels, {0.4, 0, 0, 0}, random);
    lowest = std::min<int>(lowest, pixels.bytes[0]);
    highest = std::max<int>(highest, pixels.bytes[0]);
    sum += pixels.bytes[0];
  }
  EXPECT_GE(lowest, 60);
  EXPECT_LE(lowest, 61);
  EXPECT_GE(highest, 138);
  EXPECT_LE(highest, 140);
  EXPECT_NEAR(sum / kDraws, 99.5, 1.5);
  // A factor is never below 0: above 1, half of 0 … 1 + x is not the mean of 1 − x … 1 + x.
  sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    Pixels pixels = grey(50);
    jitter_colors(pixels, {3, 0, 0, 0}, random);
    sum += pixels.bytes[0];
  }
  EXPECT_NEAR(sum / kDraws, 99.5, 3);
}

TEST(ColorJitter, DrawsTheOrderOfItsChanges) {
  // Brightness and contrast by fixed factors would give two results, one for each order.
  base::Random random({2});
  std::set<bool> seen;
  for (int i = 0; i < 200; ++i) {
    const base::Random before = random;
    Pixels pixels = noise(6, 6);
    jitter_colors(pixels, {0.9, 0.9, 0, 0}, random);
    base::Random again = before;
    std::array<int, 4> order{0, 1, 2, 3};
    again.shuffle(order);
    const double brightness = again.uniform(0.1, 1.9), contrast = again.uniform(0.1, 1.9);
    const bool first = std::find(order.begin(), order.end(), 0) < std::find(order.begin(), order.end(), 1);
    Pixels expected = noise(6, 6);
    if (first) adjust_brightness(expected, brightness);
    adjust_contrast(expected, contrast);
    if (!first) adjust_brightness(expected, brightness);
    ASSERT_EQ(pixels.bytes, expected.bytes);
    seen.insert(first);
  }
  EXPECT_EQ(seen.size(), 2u);
}

TEST(ColorJitter, OfNothingChangesNothing) {
  base::Random random({3});
  Pixels pixels = noise(9, 7);
  jitter_colors(pixels, {}, random);
  EXPECT_EQ(pixels.bytes, noise(9, 7).bytes);
}

TEST(ColorJitter, LeavesAlphaAlone) {
  base::Random random({4});
  Pixels pixels = noise(20, 10, 4);
  const Pixels before = pixels;
  jitter_colors(pixels, {0.5, 0.5, 0.5, 0.3}, random);
  for (const ChangeKind kind : {ChangeKind::kSharpness, ChangeKind::kAutoContrast, ChangeKind::kEqualize,
                                ChangeKind::kSolarize, ChangeKind::kPosterize})
    pixels = *change_image(std::move(pixels), kind, 1);
  EXPECT_NE(pixels.bytes, before.bytes);
  for (std::size_t i = 3; i < pixels.bytes.size(); i += 4) ASSERT_EQ(pixels.bytes[i], before.bytes[i]);
}

TEST(RandAugment, DrawsEachKindAndDirectionAlike) {
  base::Random random({6});
  std::vector<int> kinds(kChangeKinds);
  int ahead = 0, back = 0;
  constexpr int kDraws = 7000;
  for (int i = 0; i < kDraws; ++i) {
    base::Random copy = random;
    const auto kind = static_cast<ChangeKind>(copy.below(kChangeKinds));
    ++kinds[static_cast<std::size_t>(kind)];
    const Pixels found = *rand_augment(noise(16, 16), 1, 9, random);
    const double extent = extent_of(kind, 9, 16, 16);
    const bool is_ahead = found.bytes == change_image(noise(16, 16), kind, extent)->bytes;
    if (!is_ahead) {
      ASSERT_EQ(found.bytes, change_image(noise(16, 16), kind, -extent)->bytes);
    }
    if (kind != ChangeKind::kShearX) continue;
    is_ahead ? ++ahead : ++back;
  }
  for (const int count : kinds) EXPECT_NEAR(count, kDraws / kChangeKinds, 110);
  EXPECT_NEAR(ahead, back, 110);
}

TEST(RandAugment, MovesByNearestNeighbours) {
  const Pixels pixels{2, 3, 1, {1, 2, 3, 4, 5, 6}};
  EXPECT_THAT(move_pixels(pixels, shift(1, 0)).bytes, ElementsAre(0, 1, 2, 0, 4, 5));
  EXPECT_THAT(move_pixels(pixels, shift(0, -1)).bytes, ElementsAre(4, 5, 6, 0, 0, 0));
  EXPECT_THAT(move_pixels(pixels, rotation(180, 2, 3)).bytes, ElementsAre(6, 5, 4, 3, 2, 1));
}

// All that a dataset draws depends on seed, epoch and sample alone.
TEST(RandomChanges, DependOnSeedEpochAndSampleAlone) {
  const Pixels pixels = noise(24, 24);
  const std::string png = *encode_png(pixels);
  const auto decoded = [&](std::uint64_t seed, std::int64_t epoch, const std::string& key) {
    DecodePlan plan;
    plan.spec = ImageSpec{};
    plan.fields = {{{"png"}, FieldKind::kImage}};
    plan.seed = seed;
    plan.epoch = epoch;
    Transform jitter{Transform::Kind::kColorJitter};
    jitter.jitter = {0.4, 0.4, 0.4, 0.1};
    Transform augment{Transform::Kind::kRandAugment};
    augment.operations = 2;
    augment.magnitude = 9;
    Transform stretch{Transform::Kind::kAutoContrast};
    stretch.probability = 0.5;
    plan.transforms = {jitter, augment, stretch};
    RawSample raw;
    raw.key = key;
    raw.shard = std::make_shared<const std::string>("folder/a.tar");
    raw.fields.push_back({"png", png, key + ".png", 512, png.size()});
    const Sample sample = *decode_sample(raw, plan);
    const Array& array = std::get<Image>(sample.fields[0]).pixels;
    return std::vector<std::uint8_t>(array.data<std::uint8_t>(), array.data<std::uint8_t>() + array.bytes());
  };
  EXPECT_EQ(decoded(1, 2, "a"), decoded(1, 2, "a"));
  EXPECT_NE(decoded(1, 2, "a"), decoded(1, 2, "b"));
  EXPECT_NE(decoded(1, 2, "a"), decoded(1, 3, "a"));
  EXPECT_NE(decoded(1, 2, "a"), decoded(2, 2, "a"));
}

TEST(RandomChanges, SenselessNumbersAreRefused) {
  WebDataset dataset("a.tar");
  EXPECT_THAT(test::thrown([&] { dataset.color_jitter(-0.1, 0, 0, 0); }),
              HasSubstr("a brightness, contrast or saturation of -0.1: expected 0 or more"));
  EXPECT_THAT(test::thrown([&] { dataset.color_jitter(0, 0, 0, 0.6); }),
              HasSubstr("a hue of 0.6: expected 0 to 0.5"));
  EXPECT_THAT(test::thrown([&] { dataset.rand_augment(0, 9); }), HasSubstr("expected 1 to 100"));
  EXPECT_THAT(test::thrown([&] { dataset.rand_augment(2, 31); }), HasSubstr("expected 0 to 30"));
  EXPECT_THAT(test::thrown([&] { dataset.autocontrast(1.5); }),
              HasSubstr("a probability of 1.5: expected 0 to 1"));
}

}  // namespace
}  // namespace sluice::data
