#include "sluice/patterns/loops/rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sluice::patterns {
namespace {

using Symbols = std::vector<uint32_t>;

Symbols symbols_of(std::string_view text) { return {text.begin(), text.end()}; }

// By definition: for each period, where it holds.
std::vector<Repeat> by_definition(const Symbols& s, size_t min_rounds) {
  std::vector<Repeat> found;
  for (size_t period = 1; period * 2 <= s.size(); ++period) {
    size_t begin = 0;
    for (size_t i = 0; i + period <= s.size(); ++i) {
      if (i + period < s.size() && s[i] == s[i + period]) continue;
      const Repeat repeat{begin, i + period, period};
      begin = i + 1;
      if (repeat.end - repeat.begin < 2 * period || repeat.rounds() < min_rounds) continue;
      const bool shorter = std::any_of(found.begin(), found.end(), [&](const Repeat& r) {
        return period % r.period == 0 && r.begin <= repeat.begin && r.end >= repeat.end;
      });
      if (!shorter) found.push_back(repeat);
    }
  }
  return found;
}

TEST(Rounds, RepeatsOfAnyPeriod) {
  EXPECT_EQ(find_repeats(symbols_of("xabcabcabcaby"), 3), (std::vector<Repeat>{{1, 12, 3}}));
  EXPECT_EQ(find_repeats(symbols_of("xcbacbacbacby"), 3), (std::vector<Repeat>{{1, 12, 3}}));
  EXPECT_EQ(find_repeats(symbols_of("aaab"), 3), (std::vector<Repeat>{{0, 3, 1}}));
  EXPECT_EQ(find_repeats(symbols_of("abcdefg"), 2), std::vector<Repeat>{});
  EXPECT_EQ(find_repeats({}, 2), std::vector<Repeat>{});
}

TEST(Rounds, RepeatsWithinRepeats) {
  EXPECT_EQ(find_repeats(symbols_of("aaabaaabaaab"), 3),
            (std::vector<Repeat>{{0, 3, 1}, {4, 7, 1}, {8, 11, 1}, {0, 12, 4}}));
}

TEST(Rounds, RandomSequencesAsByDefinition) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    Symbols s(random() % 40);
    for (uint32_t& symbol : s) symbol = random() % (1 + random() % 3);
    for (const size_t rounds : {2, 3}) EXPECT_EQ(find_repeats(s, rounds), by_definition(s, rounds));
  }
}

TEST(Rounds, AMillionSymbols) {
  Symbols s(1'000'000);
  for (size_t i = 0; i < s.size(); ++i) s[i] = static_cast<uint32_t>(i % 12);
  EXPECT_EQ(find_repeats(s, 16), (std::vector<Repeat>{{0, s.size(), 12}}));
}

}  // namespace
}  // namespace sluice::patterns
