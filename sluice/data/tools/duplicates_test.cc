#include "sluice/data/tools/duplicates.h"

#include <gmock/gmock.h>

#include <random>

#include "sluice/base/random.h"
#include "sluice/data/images/resize.h"
#include "sluice/data/test_support.h"
#include "sluice/data/tools/inspect.h"

namespace sluice::data {
namespace {

using ::testing::HasSubstr;

// Blurred noise: no two are alike.
Pixels blurred_noise(std::uint64_t seed, std::int64_t side = 64) {
  base::Random random({seed});
  Pixels coarse{8, 8, 3, std::vector<std::uint8_t>(192)};
  for (std::uint8_t& byte : coarse.bytes) byte = static_cast<std::uint8_t>(random() & 255);
  return resize_bilinear(coarse, side, side);
}

TEST(Likeness, SurvivesScalingAndNoise) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Pixels image = blurred_noise(seed, 128);
    const auto original = likeness_of(image);
    ASSERT_TRUE(original);
    Pixels noisy = resize_bilinear(image, 50, 50);
    base::Random random({seed, 1});
    for (std::uint8_t& byte : noisy.bytes)
      byte = static_cast<std::uint8_t>(std::min(255, byte + static_cast<int>(random() & 3)));
    const SamplePrint a{0, "a", "", digest_of("a"), original},
        b{1, "b", "", digest_of("b"), likeness_of(noisy)};
    const SamplePrint other{1, "c", "", digest_of("c"), likeness_of(blurred_noise(seed + 100))};
    const auto found = find_duplicates({a, other, b}, 6);
    ASSERT_EQ(found.size(), 1u) << seed;
    EXPECT_EQ(found[0].sample, 2u);
    EXPECT_EQ(found[0].of, 0u);
    EXPECT_TRUE(find_duplicates({a, other, b}, std::nullopt).empty());
  }
  EXPECT_FALSE(likeness_of({16, 16, 3, std::vector<std::uint8_t>(768, 70)}));
}

// All that differ in at most so many bits are found, as by comparing each with each.
TEST(Likeness, NoPairIsMissed) {
  base::Random random({1});
  std::vector<SamplePrint> samples;
  for (int i = 0; i < 300; ++i) {
    Likeness likeness{random(), random()};
    if (i % 3 == 0 && i > 0) {
      likeness = *samples[static_cast<std::size_t>(i) - 1].likeness;
      for (int flips = 0; flips < i % 10; ++flips)
        likeness[random() & 1] ^= std::uint64_t{1} << (random() & 63);
    }
    samples.push_back({0, "", "", digest_of(std::to_string(i)), likeness});
  }
  for (const int bits : {0, 1, 6, 12}) {
    std::vector<std::size_t> expected, got;
    std::vector<std::size_t> first;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto near = [&](std::size_t other) {
        return std::popcount((*samples[i].likeness)[0] ^ (*samples[other].likeness)[0]) +
                   std::popcount((*samples[i].likeness)[1] ^ (*samples[other].likeness)[1]) <=
               bits;
      };
      (std::any_of(first.begin(), first.end(), near) ? expected : first).push_back(i);
    }
    for (const Duplicate& duplicate : find_duplicates(samples, bits)) got.push_back(duplicate.sample);
    EXPECT_EQ(got, expected) << bits;
  }
}

TEST(Verify, FindsWhatIsThereTwice) {
  const test::Folder folder;
  const std::string one = *encode_png(blurred_noise(1)), two = *encode_png(blurred_noise(2)),
                    small = *encode_png(resize_bilinear(blurred_noise(2), 40, 40));
  VerifyOptions options;
  options.urls = {
      folder.write("train.tar", test::archive({{"a.png", one},
                                               {"a.cls", "1"},
                                               {"b.png", two},
                                               {"b.cls", "2"},
                                               {"c.png", one},
                                               {"c.cls", "3"}})),
      folder.write("test.tar",
                   test::archive({{"d.png", one}, {"d.cls", "1"}, {"e.png", small}, {"e.cls", "2"}}))};
  options.sets = {0, 1};
  EXPECT_TRUE(base::value_or_throw(verify(options)).problems.empty());
  options.duplicates = true;
  auto report = base::value_or_throw(verify(options));
  ASSERT_EQ(report.problems.size(), 2u);
  EXPECT_THAT(report.problems[0].what, HasSubstr("sample c (at byte "));
  EXPECT_THAT(report.problems[0].what, HasSubstr("has the same contents as "));
  EXPECT_THAT(report.problems[0].what, HasSubstr("sample a (at byte 0); its class is 3, the other's 1"));
  EXPECT_FALSE(report.problems[0].fatal);
  EXPECT_THAT(report.problems[1].what, HasSubstr("train.tar: sample a (at byte 0), of another set"));
  EXPECT_TRUE(report.problems[1].fatal);
  EXPECT_EQ(report.duplicates, 1);
  EXPECT_EQ(report.leaks, 1);
  options.likeness = 6;
  report = base::value_or_throw(verify(options));
  ASSERT_EQ(report.problems.size(), 3u);
  EXPECT_THAT(report.problems[2].what, HasSubstr("sample e (at byte "));
  EXPECT_THAT(report.problems[2].what, HasSubstr("looks like "));
  EXPECT_EQ(report.leaks, 2);
}

// Memory grows as the samples, and a search among likenesses takes 156 bytes a sample in place of 1.2 kB.
TEST(Duplicates, TheSearchHoldsFewBytesASample) {
  for (const std::size_t count : {10'000, 100'000}) {
    std::mt19937_64 random(7);
    std::vector<SamplePrint> samples(count);
    for (SamplePrint& sample : samples) {
      for (unsigned char& byte : sample.contents) byte = static_cast<unsigned char>(random());
      sample.likeness = Likeness{random(), random()};
    }
    samples[count - 1].contents = samples[5].contents;
    samples[count - 2].likeness = Likeness{(*samples[3].likeness)[0] ^ 1, (*samples[3].likeness)[1]};
    std::size_t held = 0;
    const auto found = find_duplicates(samples, 12, &held);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].of, 3U);
    EXPECT_EQ(found[0].different_bits, 1);
    EXPECT_EQ(found[1].of, 5U);
    EXPECT_LE(held, count * 14 * 12);  // 14 lists of at most 12 bytes
    find_duplicates(samples, std::nullopt, &held);
    EXPECT_LE(held, count * 12);
  }
}

}  // namespace
}  // namespace sluice::data
