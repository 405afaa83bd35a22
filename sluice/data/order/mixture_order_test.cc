// Which source comes when: shares, passes, lanes and places to begin at.
#include "sluice/data/order/mixture_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "sluice/data/order/order.h"

namespace sluice::data {
namespace {

// The sources of the samples of an epoch, in order.
std::vector<std::size_t> sources_of(const MixtureOrder& order, std::int64_t epoch, std::int64_t rows,
                                    std::int64_t skip = 0) {
  std::vector<MixtureOrder::Lane> lanes;
  for (std::int64_t lane = 0; lane < order.ranges(); ++lane) lanes.push_back(order.lane(lane, epoch, skip));
  std::vector<std::size_t> sources;
  for (std::int64_t i = skip * rows; i < order.batches() * rows; ++i)
    sources.push_back(lanes[static_cast<std::size_t>(i % order.ranges())].next());
  return sources;
}

TEST(MixtureOrder, SharesHoldInEveryPartOfAnEpoch) {
  const MixtureOrder order({1000, 300, 7}, {{0, {0.6, 0.3, 0.1}}}, 10'000, 100, 16, 1);
  EXPECT_EQ(order.batches(), 100);
  const auto sources = sources_of(order, 0, 100);
  for (std::size_t begin = 0; begin < sources.size(); begin += 500) {
    std::vector<int> counts(3);
    for (std::size_t i = begin; i < begin + 500; ++i) ++counts[sources[i]];
    EXPECT_NEAR(counts[0], 300, 8);
    EXPECT_NEAR(counts[1], 150, 8);
    EXPECT_NEAR(counts[2], 50, 8);
  }
  EXPECT_EQ(order.taken_before(3), (std::vector<std::int64_t>{18'000, 9'000, 3'000}));
  EXPECT_NE(sources, sources_of(order, 1, 100));
}

TEST(MixtureOrder, APlaceInAnEpochIsFoundWithoutWhatComesBeforeIt) {
  const MixtureOrder order({50, 300, 7}, {{0, {0.6, 0.3, 0.1}}, {7, {0.1, 0, 0.9}}, {25, {1, 1, 0}}}, 640, 32,
                           8, 5);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    const auto whole = sources_of(order, epoch, 32);
    for (std::int64_t skip = 0; skip <= order.batches(); ++skip) {
      const std::vector<std::size_t> rest(whole.begin() + skip * 32, whole.end());
      ASSERT_EQ(sources_of(order, epoch, 32, skip), rest) << epoch << " " << skip;
    }
  }
}

TEST(MixtureOrder, SharesChangeAtTheirBatch) {
  const MixtureOrder order({50, 300}, {{0, {1, 0}}, {5, {0, 1}}, {12, {1, 0}}, {40, {0.5, 0.5}}}, 320, 32, 8,
                           5);
  std::vector<std::size_t> run;
  for (std::int64_t epoch = 0; epoch < 6; ++epoch) {
    const auto sources = sources_of(order, epoch, 32);
    run.insert(run.end(), sources.begin(), sources.end());
  }
  for (std::size_t i = 0; i < 40 * 32; ++i) EXPECT_EQ(run[i], i / 32 >= 5 && i / 32 < 12 ? 1u : 0u) << i;
  EXPECT_EQ(std::count(run.begin() + 40 * 32, run.end(), 1u), 20 * 16);
  EXPECT_EQ(order.taken_before(1), (std::vector<std::int64_t>{160, 160}));
  EXPECT_EQ(order.taken_before(6), (std::vector<std::int64_t>{33 * 32 + 320, 7 * 32 + 320}));
}

// Whatever the sizes are: the lanes take each pass of each source exactly once, and a pass is over before the
// second next one begins.
TEST(MixtureOrder, EachPassIsWhole) {
  const std::vector<std::int64_t> sizes = {1, 5, 64, 1000, 4321};
  const MixtureOrder order(sizes, {{0, {0.2, 0.1, 0.3, 0.3, 0.1}}, {17, {0.05, 0.5, 0.05, 0.1, 0.3}}}, 999,
                           48, 16, 9);
  std::vector<std::map<std::int64_t, std::int64_t>> passes(sizes.size());  // samples of each pass
  for (std::int64_t epoch = 0; epoch < 12; ++epoch) {
    for (std::int64_t number = 0; number < order.ranges(); ++number) {
      MixtureOrder::Lane lane = order.lane(number, epoch, 0);
      const std::int64_t count = in_turn(0, order.batches() * 48, number, order.ranges());
      for (std::int64_t i = 0; i < count; ++i) {
        const std::size_t source = lane.next();
        const std::int64_t position = lane.positions()[source] - 1;
        const auto pass = order.pass_at(source, number, position);
        ASSERT_LE(pass.first, position);
        ASSERT_LT(position, pass.first + pass.length);
        ++passes[source][pass.number];
      }
      // The next epoch goes on where this one ends.
      ASSERT_EQ(lane.positions(), order.lane(number, epoch + 1, 0).positions());
    }
  }
  const auto taken = order.taken_before(12);
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    std::int64_t left = taken[s];
    for (const auto& [pass, count] : passes[s]) {
      EXPECT_EQ(count, std::min(left, sizes[s])) << "source " << s << " pass " << pass;
      left -= count;
      if (sizes[s] > count) continue;
      const auto lengths = order.lengths(s, pass);
      EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), sizes[s]);
    }
    EXPECT_EQ(left, 0);
  }
}

TEST(MixtureOrder, JoinedSetsEndTogether) {
  const MixtureOrder order({300, 180}, {{0, {300.0 / 480, 180.0 / 480}}}, 480, 16, 8, 0);
  EXPECT_EQ(order.taken_before(1), (std::vector<std::int64_t>{300, 180}));
  EXPECT_EQ(order.taken_before(7), (std::vector<std::int64_t>{2100, 1260}));
}

// The cost of a sample grows with the logarithm of the number of sources.
TEST(MixtureOrder, ManySourcesCostFewComparisons) {
  const auto comparisons = [](std::size_t sources) {
    const MixtureOrder order(std::vector<std::int64_t>(sources, 100),
                             {{0, std::vector<double>(sources, 1.0 / static_cast<double>(sources))}},
                             static_cast<std::int64_t>(40 * sources), 4, 4, 1);
    auto lane = order.lane(1, 0, 0);
    for (std::size_t i = 0; i < 10 * sources; ++i) static_cast<void>(lane.next());
    return static_cast<double>(lane.compared()) / static_cast<double>(10 * sources);
  };
  const double few = comparisons(16), many = comparisons(1024);
  EXPECT_LE(few, 2 * 4 + 4);
  EXPECT_LE(many, 2 * 10 + 4) << "a heap of 1,024 takes at most 2 comparisons a level";
  EXPECT_GT(many, 0);
}

}  // namespace
}  // namespace sluice::data
