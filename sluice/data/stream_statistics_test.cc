#include "sluice/data/stream_statistics.h"

#include <gmock/gmock.h>

namespace sluice::data {
namespace {

using ::testing::HasSubstr;

TEST(Advice, FitsTheStageAndTheMachine) {
  Statistics statistics;
  statistics.decoders = 2;
  EXPECT_THAT(advice("decode", statistics, 8),
              HasSubstr("more --workers: 2 threads decode, and there are 8 cores"));
  EXPECT_THAT(advice("decode", statistics, 2), HasSubstr("all cores decode"));
  EXPECT_THAT(advice("upload", statistics, 8), HasSubstr("larger batches"));
  EXPECT_THAT(advice("read", statistics, 8), HasSubstr("a faster disk"));
  statistics.remote = true;
  EXPECT_THAT(advice("read", statistics, 8), HasSubstr("--cache DIR"));
  statistics.cached = true;
  EXPECT_THAT(advice("read", statistics, 8), HasSubstr("more hosts"));
  statistics.indexed = false;
  EXPECT_THAT(advice("read", statistics, 8), HasSubstr("sluice data index"));
}

}  // namespace
}  // namespace sluice::data
