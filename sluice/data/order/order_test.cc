#include "sluice/data/order/order.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using Sizes = std::vector<std::int64_t>;

// Every sample of every shard is in exactly one range, and the ranges are equally long.
TEST(EpochOrder, DealsEverySampleOnce) {
  for (const Sizes& sizes : {Sizes{100}, Sizes{7, 0, 1, 30, 2}, Sizes(20, 10), Sizes{1}, Sizes{3, 3}}) {
    for (const std::int64_t ranges : {1, 2, 8, 64}) {
      for (const bool shuffle : {false, true}) {
        const std::int64_t offset = 5 * ranges + ranges / 3;
        const EpochOrder order(sizes, shuffle, 7, 3, ranges, offset);
        std::set<std::pair<std::size_t, std::int64_t>> seen;
        std::int64_t total = 0, shortest = 1 << 20, longest = 0;
        for (const std::int64_t size : sizes) total += size;
        for (std::int64_t range = 0; range < ranges; ++range) {
          std::int64_t length = 0;
          for (const Segment& segment : order.segments(range)) {
            EXPECT_LE(segment.first + segment.count, sizes[segment.shard]);
            length += segment.count;
            for (std::int64_t i = 0; i < segment.count; ++i)
              EXPECT_TRUE(seen.emplace(segment.shard, segment.first + i).second);
          }
          EXPECT_EQ(length, order.length(range));
          EXPECT_EQ(length, order.taken(range, total));
          shortest = std::min(shortest, length);
          longest = std::max(longest, length);
        }
        EXPECT_EQ(static_cast<std::int64_t>(seen.size()), total);
        EXPECT_LE(longest - shortest, 1);
      }
    }
  }
}

TEST(EpochOrder, WithoutShuffleTheRunsAreTheShardsInTheirOrder) {
  const EpochOrder order({4, 3, 5}, false, 1, 0, 3);
  EXPECT_THAT(order.segments(0), ElementsAre(Segment{0, 0, 4}));
  EXPECT_THAT(order.segments(1), ElementsAre(Segment{1, 0, 3}, Segment{2, 0, 1}));
  EXPECT_THAT(order.segments(2), ElementsAre(Segment{2, 1, 4}));
}

// As many shards in each range, all of one size: none is split.
TEST(EpochOrder, EqualShardsAreNotSplit) {
  const EpochOrder order(Sizes(640, 2000), true, 42, 5, 64);
  std::set<std::size_t> shards;
  for (std::int64_t range = 0; range < 64; ++range) {
    const auto segments = order.segments(range);
    EXPECT_EQ(segments.size(), 10u);
    for (const Segment& segment : segments) {
      EXPECT_EQ(segment.count, 2000);
      shards.insert(segment.shard);
    }
  }
  EXPECT_EQ(shards.size(), 640u);
  EXPECT_NE(order.segments(0), EpochOrder(Sizes(640, 2000), true, 42, 6, 64).segments(0));
  EXPECT_NE(order.segments(0), EpochOrder(Sizes(640, 2000), true, 43, 5, 64).segments(0));
  EXPECT_EQ(order.segments(0), EpochOrder(Sizes(640, 2000), true, 42, 5, 64).segments(0));
}

TEST(BatchPlan, CountsWhatEachRemainderMakes) {
  BatchPlan plan{18, 4, 2, Remainder::kDrop, 3};
  EXPECT_EQ(plan.batches(), 2);
  plan.remainder = Remainder::kPad;
  EXPECT_EQ(plan.batches(), 3);
  EXPECT_EQ(plan.count(1), 8);
  EXPECT_EQ(plan.count(2), 2);
  // Carried over: 18 = 2·8 + 2, 36 = 4·8 + 4, 54 = 6·8 + 6, 72 = 9·8.
  plan.remainder = Remainder::kCarry;
  std::int64_t next = 0;
  for (plan.epoch = 0; plan.epoch < 8; ++plan.epoch) {
    EXPECT_EQ(plan.batches(), plan.epoch % 4 == 3 ? 3 : 2);
    for (std::int64_t k = 0; k < plan.batches(); ++k, next += 8) {
      EXPECT_EQ(plan.begin(k), next);
      EXPECT_EQ(plan.count(k), 8);
    }
  }
}

}  // namespace
}  // namespace sluice::data
