#include "sluice/stablehlo/attention_dropout.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

namespace sluice::stablehlo {
namespace {

constexpr size_t kRows = 2000, kKeys = 500;

struct Seeds {
  uint32_t first, second;
};

// Which keys each query keeps.
std::vector<std::vector<uint8_t>> decisions(float p, const std::vector<Seeds>& seeds) {
  std::vector<std::vector<uint8_t>> kept;
  for (const Seeds& of_query : seeds) {
    std::vector<uint8_t>& row = kept.emplace_back();
    for (uint32_t key = 0; key < kKeys; ++key) {
      uint32_t bits = of_query.first + key * kKeyFactor;
      take_bits(bits, of_query.second);
      row.push_back(bits >> kLowBits < kept_below(p));
    }
  }
  return kept;
}

std::vector<Seeds> random_seeds() {
  std::mt19937 random(5);
  std::vector<Seeds> seeds;
  for (size_t i = 0; i < kRows; ++i) {
    const auto first = static_cast<uint32_t>(random());
    seeds.push_back({first, static_cast<uint32_t>(random())});
  }
  return seeds;
}

// How many standard deviations a count of `tries` lies from what is expected with probability p of each.
double distance(size_t count, size_t tries, double p) {
  const auto n = static_cast<double>(tries);
  return std::abs(static_cast<double>(count) - n * p) / std::sqrt(n * p * (1 - p));
}

TEST(AttentionDropout, KeepsAsManyAsItShould) {
  for (const float p : {0.001f, 0.1f, 0.5f, 0.9f}) {
    const auto kept = decisions(p, random_seeds());
    std::vector<size_t> of_key(kKeys);
    size_t all = 0, far = 0;
    for (const std::vector<uint8_t>& row : kept) {
      size_t of_row = 0;
      for (size_t key = 0; key < kKeys; ++key) of_key[key] += row[key], of_row += row[key];
      if (p > 0.01f) far += distance(of_row, kKeys, 1 - p) > 3;
      all += of_row;
    }
    EXPECT_LT(distance(all, kRows * kKeys, 1 - p), 4) << p;
    EXPECT_LT(far, kRows / 100) << "rows far from the mean, p " << p;
    for (const size_t count : of_key) EXPECT_LT(distance(count, kRows, 1 - p), 5) << p;
  }
  EXPECT_EQ(kept_below(1), 0u);
  EXPECT_EQ(kept_below(0), 1u << 24);
}

// Two keys of a query are kept together as often as two coins show the same; so are two queries.
TEST(AttentionDropout, DecisionsAreIndependent) {
  for (const float p : {0.1f, 0.5f}) {
    const double both = (1.0 - p) * (1 - p);
    std::vector<Seeds> seeds = random_seeds();
    auto kept = decisions(p, seeds);
    for (const size_t lag : {1, 2, 3, 4, 5, 8, 16, 21, 34, 64, 128}) {
      size_t together = 0;
      for (const std::vector<uint8_t>& row : kept)
        for (size_t key = 0; key + lag < kKeys; ++key) together += row[key] & row[key + lag];
      // Pairs overlap, so their counts spread somewhat wider.
      EXPECT_LT(distance(together, kRows * (kKeys - lag), both), 8) << "lag " << lag << ", p " << p;
    }
    // Pairs of queries: of different seeds, and of first seeds that differ in one bit.
    for (const bool alike : {false, true}) {
      size_t together = 0;
      for (size_t i = 1; i < kRows; i += 2)
        if (alike) seeds[i] = {seeds[i - 1].first ^ 1u << i / 2 % 32, seeds[i - 1].second};
      kept = decisions(p, seeds);
      for (size_t i = 1; i < kRows; i += 2)
        for (size_t key = 0; key < kKeys; ++key) together += kept[i][key] & kept[i - 1][key];
      EXPECT_LT(distance(together, kRows / 2 * kKeys, both), 5) << "alike " << alike << ", p " << p;
    }
  }
}

}  // namespace
}  // namespace sluice::stablehlo
