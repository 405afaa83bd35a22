// The hash of random words: 2^24 words of rows and columns, of several keys, draws, replicas and places, in
// tests of randomness. Bounds are of 5 standard deviations or more. What devices draw is compared with these
// functions in tests/device/random_test.cc.
#include "sluice/ops/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <string>
#include <vector>

namespace sluice::ops {
namespace {

constexpr uint32_t kWords = 1u << 24;
using Keys = RoundKeys<uint32_t>;

// The keys of a draw of a call on a replica, as devices put the state together.
Keys keys_of(uint64_t key, uint32_t draw = 0, uint32_t replica = 0) {
  return round_keys(static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32), draw, replica << 8);
}

std::vector<uint32_t> words_of(const Keys& keys, uint32_t count = kWords) {
  std::vector<uint32_t> words(count);
  for (uint32_t place = 0; place < count; ++place) words[place] = word_at(place, keys);
  return words;
}

// A key that nobody would draw, and one as a generator draws them.
constexpr uint64_t kZero = 0, kDrawn = 0x5851f42d4c957f2d;
constexpr uint64_t kKeys[] = {kZero, kDrawn};

// How many standard deviations a count of `tries` lies from what is expected with probability p of each.
double distance(double count, double tries, double p) {
  return std::abs(count - tries * p) / std::sqrt(tries * p * (1 - p));
}

// How many standard deviations chi-squared lies from its mean, if all cells are as probable.
double chi_squared(const std::vector<uint32_t>& cells) {
  double sum = 0, total = 0;
  for (const uint32_t count : cells) total += count;
  const double expected = total / static_cast<double>(cells.size());
  for (const uint32_t count : cells) sum += (count - expected) * (count - expected) / expected;
  const auto freedom = static_cast<double>(cells.size() - 1);
  return std::abs(sum - freedom) / std::sqrt(2 * freedom);
}

// One bit for each element: whether dropout keeps it, as random.cc decides.
using Decisions = std::vector<uint64_t>;
constexpr uint32_t kBits = 64;

Decisions kept(const std::vector<uint32_t>& words, double keep) {
  const auto below = static_cast<uint32_t>(std::ceil(keep * 0x1p24));
  Decisions all(words.size() / kBits);
  for (uint32_t i = 0; i < words.size(); ++i) all[i / kBits] |= uint64_t{words[i] >> 8 < below} << i % kBits;
  return all;
}

double ones(const Decisions& all) {
  size_t sum = 0;
  for (const uint64_t bits : all) sum += static_cast<size_t>(std::popcount(bits));
  return static_cast<double>(sum);
}

// How many standard deviations two rows of decisions are from independence, b read `lag` elements later.
double dependence(const Decisions& a, const Decisions& b, size_t lag, double keep) {
  const size_t skipped = lag / kBits, shift = lag % kBits, count = a.size() - skipped - 1;
  size_t both = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t low = b[i + skipped] >> shift,
                   high = shift == 0 ? 0 : b[i + skipped + 1] << (kBits - shift);
    both += static_cast<size_t>(std::popcount(a[i] & (low | high)));
    of_a += static_cast<size_t>(std::popcount(a[i]));
    of_b += static_cast<size_t>(std::popcount(low | high));
  }
  // The sum of (a - keep) (b - keep), each of mean 0 and of variance (keep (1 - keep))².
  const auto pairs = static_cast<double>(count * kBits);
  const double sum = static_cast<double>(both) - keep * (static_cast<double>(of_a + of_b) - keep * pairs);
  return std::abs(sum) / (std::sqrt(pairs) * keep * (1 - keep));
}

// Computed with Python's numbers from the description in random.h.
TEST(RandomWords, AreTheseForEver) {
  EXPECT_EQ(mixed(0u), 0u);
  EXPECT_EQ(mixed(1u), 0x042741d6u);
  const Keys keys = keys_of(0x0123456789abcdef, 2, 3);
  EXPECT_EQ(keys.first, 0xbbbf2826u);
  EXPECT_EQ(keys.second, 0x06ea3f16u);
  EXPECT_EQ(keys.third, 0x083bf594u);
  EXPECT_EQ(word_at(0u, keys), 0x62430319u);
  EXPECT_EQ(word_at(123456789u, keys), 0x0862cf79u);
  EXPECT_EQ(word_at(5u, 0u, keys), word_at(5u, keys));
  EXPECT_EQ(word_at(5u, 1u, keys), 0x564388b4u);
}

TEST(RandomWords, BitsAreBalanced) {
  constexpr uint32_t kPart = 1u << 21;
  for (const uint64_t key : kKeys) {
    std::array<uint32_t, 32> set{};
    std::array<uint32_t, 31> alike{};  // neighbouring bits
    for (const uint32_t word : words_of(keys_of(key), kPart)) {
      const uint32_t same = ~(word ^ word >> 1);
      for (size_t bit = 0; bit < 32; ++bit) set[bit] += word >> bit & 1;
      for (size_t bit = 0; bit < 31; ++bit) alike[bit] += same >> bit & 1;
    }
    for (const uint32_t count : set) EXPECT_LT(distance(count, kPart, 0.5), 5) << key;
    for (const uint32_t count : alike) EXPECT_LT(distance(count, kPart, 0.5), 5) << key;
  }
}

TEST(RandomWords, FillAllCellsAlike) {
  for (const uint64_t key : kKeys) {
    const std::vector<uint32_t> words = words_of(keys_of(key), key == kDrawn ? kWords : kWords / 16);
    std::vector<uint32_t> high(65536), low(65536), pairs(65536), of_lag(65536);
    for (size_t i = 0; i < words.size(); ++i) {
      ++high[words[i] >> 16];
      ++low[words[i] & 0xffff];
      ++pairs[(words[i] >> 24) << 8 | words[(i + 1) % words.size()] >> 24];
      ++of_lag[(words[i] & 0xff) << 8 | words[(i + 768) % words.size()] >> 24];
    }
    for (const auto* cells : {&high, &low, &pairs, &of_lag}) EXPECT_LT(chi_squared(*cells), 5) << key;
  }
}

// A hash that only permutes places would never repeat a word.
TEST(RandomWords, RepeatAsOftenAsChanceHasThem) {
  constexpr uint32_t kPart = 1u << 22;
  std::vector<uint32_t> words = words_of(keys_of(kDrawn), kPart);
  std::sort(words.begin(), words.end());
  double repeated = 0;
  for (size_t i = 1; i < words.size(); ++i) repeated += words[i] == words[i - 1];
  const double expected = kPart / 0x1p32 * kPart / 2;
  EXPECT_LT(std::abs(repeated - expected) / std::sqrt(expected), 5) << repeated;
}

// The rank of a random matrix of 32 x 32 bits: full in 28.88 %, one less in 57.76 % of all cases.
TEST(RandomWords, MakeMatricesOfTheRightRank) {
  const std::vector<uint32_t> words = words_of(keys_of(kDrawn), 1u << 21);
  double full = 0, one_less = 0;
  const size_t matrices = words.size() / 32;
  for (size_t m = 0; m < matrices; ++m) {
    std::array<uint32_t, 32> rows;
    std::copy_n(words.begin() + static_cast<ptrdiff_t>(32 * m), 32, rows.begin());
    int rank = 0;
    for (uint32_t bit = 0; bit < 32; ++bit) {
      const auto first = rows.begin() + rank;
      const auto pivot = std::find_if(first, rows.end(), [&](uint32_t row) { return row >> bit & 1; });
      if (pivot == rows.end()) continue;
      std::iter_swap(first, pivot);
      for (auto row = first + 1; row != rows.end(); ++row)
        if (*row >> bit & 1) *row ^= *first;
      ++rank;
    }
    full += rank == 32;
    one_less += rank == 31;
  }
  const auto all = static_cast<double>(matrices);
  EXPECT_LT(distance(full, all, 0.288788095), 5);
  EXPECT_LT(distance(one_less, all, 0.577576190), 5);
}

// How many elements lie between two that are dropped.
TEST(RandomWords, GapsHaveTheRightLengths) {
  constexpr double kKeep = 0.9;
  std::vector<double> gaps(65);
  double all = 0;
  size_t begin = 0;
  const Decisions decisions = kept(words_of(keys_of(kDrawn)), kKeep);
  for (size_t i = 0; i < decisions.size(); ++i)
    for (uint64_t dropped = ~decisions[i]; dropped != 0; dropped &= dropped - 1) {
      const size_t place = i * kBits + static_cast<size_t>(std::countr_zero(dropped));
      ++gaps[std::min<size_t>(place - begin, 64)];
      ++all;
      begin = place + 1;
    }
  for (size_t i = 0; i < 64; ++i) {
    const double p = std::pow(kKeep, static_cast<double>(i)) * (1 - kKeep);
    EXPECT_LT(distance(gaps[i], all, p), 5) << "gap " << i;
  }
}

TEST(RandomWords, KeepAsManyAsTheyShould) {
  constexpr size_t kSide = 4096;  // rows and columns
  const std::vector<uint32_t> words = words_of(keys_of(kDrawn));
  for (const double keep : {0.1, 0.5, 0.9}) {
    const Decisions all = kept(words, keep);
    EXPECT_LT(distance(ones(all), kWords, keep), 5) << keep;
    std::vector<uint32_t> of_row(kSide), of_column(kSide);
    for (size_t i = 0; i < kWords; ++i) {
      const auto one = static_cast<uint32_t>(all[i / kBits] >> i % kBits & 1);
      of_row[i / kSide] += one;
      of_column[i % kSide] += one;
    }
    for (const auto* counts : {&of_row, &of_column}) {
      double squares = 0;
      for (const uint32_t count : *counts) {
        EXPECT_LT(distance(count, kSide, keep), 6) << keep;
        squares += std::pow(distance(count, kSide, keep), 2);
      }
      // The counts spread neither more nor less than by chance.
      EXPECT_LT(std::abs(squares - kSide) / std::sqrt(2.0 * kSide), 5) << keep;
    }
  }
  for (const double keep : {0.001, 0.999})
    EXPECT_LT(distance(ones(kept(words, keep)), kWords, keep), 5) << keep;
}

// Elements of one call: neighbours along rows, columns and further dimensions of several widths.
TEST(RandomWords, ElementsAreIndependent) {
  for (const uint64_t key : kKeys) {
    const std::vector<uint32_t> words = words_of(keys_of(key));
    for (const double keep : {0.1, 0.5, 0.9}) {
      const Decisions all = kept(words, keep);
      for (const size_t lag :
           {1,   2,   3,    4,    5,    7,    8,    16,    31,    32,     64,      100,    128,
            512, 768, 1000, 1024, 2048, 3072, 4096, 50257, 65536, 786432, 1 << 20, 1 << 23})
        EXPECT_LT(dependence(all, all, lag, keep), 5) << key << ", lag " << lag << ", keep " << keep;
    }
  }
}

// Two calls, whose keys are random, differ in one bit or follow each other; two draws of one call; two
// replicas.
TEST(RandomWords, CallsDrawsAndReplicasAreIndependent) {
  constexpr uint32_t kPart = 1u << 20;
  const uint64_t key = kDrawn;
  std::vector<std::pair<std::string, Keys>> others = {{"another key", keys_of(0x14057b7ef767814f)},
                                                      {"the next key", keys_of(key + 1)},
                                                      {"the next draw", keys_of(key, 1)},
                                                      {"the third draw", keys_of(key, 2)},
                                                      {"replica 1", keys_of(key, 0, 1)},
                                                      {"replica 2", keys_of(key, 0, 2)},
                                                      {"replica 4095", keys_of(key, 0, 4095)},
                                                      {"draw and replica", keys_of(key, 1, 1)}};
  for (int bit = 0; bit < 64; bit += 3)
    others.emplace_back(std::to_string(bit), keys_of(key ^ uint64_t{1} << bit));
  const std::vector<uint32_t> words = words_of(keys_of(key), kPart);
  for (const auto& [name, keys] : others) {
    const std::vector<uint32_t> more = words_of(keys, kPart);
    for (const double keep : {0.5, 0.9}) {
      const Decisions one = kept(words, keep), other = kept(more, keep);
      for (const size_t lag : {0, 1, 1024}) {
        EXPECT_LT(dependence(one, other, lag, keep), 5) << name << ", lag " << lag << ", keep " << keep;
        EXPECT_LT(dependence(other, one, lag, keep), 5) << name << ", lag " << lag << ", keep " << keep;
      }
    }
  }
}

// Calls of one first key, in which the same words enter the second round: the other two keys make them
// differ, even if only one bit of the call's key does.
TEST(RandomWords, TwoKeysAreEnough) {
  constexpr uint32_t kPart = 1u << 20;
  const Decisions one = kept(words_of(keys_of(kDrawn), kPart), 0.5);
  for (int bit = 32; bit < 64; ++bit) {
    const Keys keys = keys_of(kDrawn ^ uint64_t{1} << bit);
    EXPECT_EQ(keys.first, keys_of(kDrawn).first);
    EXPECT_LT(dependence(one, kept(words_of(keys, kPart), 0.5), 0, 0.5), 5) << bit;
  }
}

// One other bit of the place or of the key changes every bit of the word as often as not.
TEST(RandomWords, EveryBitChangesEveryBit) {
  constexpr int kTries = 1 << 13;
  std::mt19937_64 random(3);
  std::vector<std::array<uint32_t, 32>> changed(32 + 64 + 8);
  for (int i = 0; i < kTries; ++i) {
    const uint64_t key = random();
    const auto place = static_cast<uint32_t>(random());
    const uint32_t word = word_at(place, keys_of(key));
    for (uint32_t from = 0; from < changed.size(); ++from) {
      uint32_t other = 0;
      if (from < 32)
        other = word_at(place ^ 1u << from, keys_of(key));
      else if (from < 96)
        other = word_at(place, keys_of(key ^ uint64_t{1} << (from - 32)));
      else
        other = word_at(place, 1u << 4 * (from - 96), keys_of(key));
      for (uint32_t to = 0; to < 32; ++to) changed[from][to] += (word ^ other) >> to & 1;
    }
  }
  for (uint32_t from = 0; from < changed.size(); ++from)
    for (uint32_t to = 0; to < 32; ++to)
      EXPECT_LT(distance(changed[from][to], kTries, 0.5), 6) << from << " to " << to;
}

// Places from 2^32 on have words of their own.
TEST(RandomWords, GoOnAfterFourBillions) {
  constexpr uint32_t kPart = 1u << 22;
  const Keys keys = keys_of(kDrawn);
  const Decisions one = kept(words_of(keys, kPart), 0.5);
  for (const uint32_t high : {1u, 2u, 3u, 1u << 20}) {
    std::vector<uint32_t> words(kPart);
    for (uint32_t place = 0; place < kPart; ++place) words[place] = word_at(place, high, keys);
    const Decisions other = kept(words, 0.5);
    for (const size_t lag : {0, 1, 1024}) {
      EXPECT_LT(dependence(one, other, lag, 0.5), 5) << high << ", lag " << lag;
      EXPECT_LT(dependence(other, other, lag + 1, 0.5), 5) << high << ", lag " << lag;
    }
  }
}

}  // namespace
}  // namespace sluice::ops
