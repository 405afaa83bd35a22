#include "sluice/data/order/original_order.h"

#include <gmock/gmock.h>

#include <set>

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using Sizes = std::vector<std::int64_t>;

// The figures of the first training job.
TEST(OriginalPlan, GivesTheFirstJobsCounts) {
  const auto plan = OriginalPlan::make(Sizes(640, 2000), 32, 8, 128, 1'280'000);
  EXPECT_EQ(plan.steps(), 313);
  std::set<std::int64_t> sizes;
  for (std::int64_t replica = 0; replica < 32; ++replica) {
    EXPECT_EQ(plan.samples(replica), 39'664);
    for (const auto& step : plan.replicas[static_cast<std::size_t>(replica)]) sizes.insert(step.rows);
  }
  EXPECT_THAT(sizes, ElementsAre(32, 112, 128));
  // urls[3::32][7::8]
  EXPECT_THAT(OriginalPlan::shards(640, 3, 32, 7, 8), ElementsAre(227, 483));
  EXPECT_THAT(OriginalPlan::shards(640, 3, 32, 0, 8), ElementsAre(3, 259, 515));
}

TEST(OriginalPlan, EveryReplicaEndsWithTheFirst) {
  const auto plan = OriginalPlan::make({10, 10, 10, 4}, 2, 1, 4, 0);
  EXPECT_EQ(plan.steps(), 4);  // 34 ÷ 8 and one more would be 5; the second replica has 10 + 4 = 3.5 batches
  EXPECT_EQ(plan.samples(1), 14);
  EXPECT_EQ(plan.samples(0), 16);
  EXPECT_EQ(OriginalPlan::make({10, 10, 10, 4}, 2, 1, 4, 0, true).samples(1), 12);
  EXPECT_EQ(OriginalPlan::make({10}, 2, 1, 4, 0).steps(), 0);
}

}  // namespace
}  // namespace sluice::data
