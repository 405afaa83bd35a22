#include "sluice/text/token_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "sluice/base/files/file.h"
#include "sluice/text/test_tokenizer.h"
#include "sluice/text/test_tokens.h"

namespace sluice::text {
namespace {

using test::thrown;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<std::uint32_t>;

class Windows : public ::testing::Test {
 protected:
  // Files of the numbers 0, 1, … of which each has so many.
  TokenSet set(const std::vector<std::size_t>& sizes) {
    std::vector<TokenFile> files;
    std::uint32_t next = 0;
    for (const std::size_t size : sizes) {
      Ids ids(size);
      std::iota(ids.begin(), ids.end(), next);
      next += static_cast<std::uint32_t>(size);
      const std::string name = folder_.path(std::to_string(next) + "-" + std::to_string(size));
      files.push_back(test::token_file(name, {ids}));
    }
    return TokenSet(std::move(files));
  }

  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
};

TEST_F(Windows, RunOverTheEndsOfFiles) {
  const TokenWindows windows(set({3, 0, 1, 7}), {.length = 5, .shuffle = false});
  EXPECT_EQ(windows.size(), 2u);
  EXPECT_THAT(windows.window(0, 0), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(windows.window(7, 1), ElementsAre(5, 6, 7, 8, 9));
  const TokenWindows shared(set({3, 0, 1, 7}), {.length = 6, .overlap = 1, .shuffle = false});
  EXPECT_EQ(shared.size(), 2u);
  EXPECT_THAT(shared.window(0, 1), ElementsAre(5, 6, 7, 8, 9, 10));
}

TEST_F(Windows, AnEpochHasEachOfThemOnceInAnOrderOfItsOwn) {
  for (const std::size_t count : {1, 2, 3, 4, 5, 100, 1000}) {
    const TokenWindows windows(set({count}), {.length = 1});
    ASSERT_EQ(windows.size(), count);
    const auto order = [&](std::uint64_t epoch) {
      Ids order;
      for (std::uint64_t place = 0; place < count; ++place) order.push_back(windows.window(epoch, place)[0]);
      return order;
    };
    const Ids first = order(0);
    Ids sorted = first, all(count);
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sorted, all);
    EXPECT_EQ(order(0), first);
    if (count < 100) continue;
    EXPECT_NE(order(1), first);
    // Windows are a third of the set away from where they were, as in all orders alike.
    double away = 0;
    for (std::size_t i = 0; i < count; ++i)
      away += std::abs(static_cast<double>(first[i]) - static_cast<double>(i));
    EXPECT_NEAR(away / static_cast<double>(count * count), 1.0 / 3, 0.07);
  }
}

TEST_F(Windows, GoOnWhereARunStopped) {
  const TokenSet tokens = set({40, 60});
  // [token_windows]
  const sluice::text::TokenWindows windows(tokens, {.length = 9, .overlap = 1, .seed = 7});
  const std::uint64_t replica = 1, replicas = 2;  // this one, of so many
  std::vector<std::vector<std::uint32_t>> seen;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch)
    for (std::uint64_t place = replica; place < windows.size(); place += replicas)
      seen.push_back(windows.window(epoch, place));  // epoch and place are all that a checkpoint keeps
  // [end]
  ASSERT_EQ(windows.size(), 12u);
  ASSERT_EQ(seen.size(), 12u);
  const TokenWindows later(tokens, {.length = 9, .overlap = 1, .seed = 7});
  EXPECT_EQ(later.window(1, 5), seen[8]);
  EXPECT_NE(TokenWindows(tokens, {.length = 9, .overlap = 1, .seed = 8}).window(1, 5), seen[8]);
}

TEST_F(Windows, SayWhatIsWrong) {
  EXPECT_THAT(thrown([&] { TokenWindows(set({9}), {.length = 1, .overlap = 1}); }),
              HasSubstr("windows of 1 tokens that share 1: expected a length above that"));
  EXPECT_THAT(thrown([&] { TokenWindows(set({9}), {.length = 10}); }),
              HasSubstr("the set has 9 tokens: expected at least 10"));
  EXPECT_THAT(thrown([&] { TokenWindows(set({9}), {.length = 9}).window(0, 1); }),
              HasSubstr("window 1 of 1"));
}

}  // namespace
}  // namespace sluice::text
