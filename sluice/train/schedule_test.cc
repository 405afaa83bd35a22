#include "sluice/train/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::train {
namespace {

ScheduleOptions options(LrSchedule kind) {
  ScheduleOptions result;
  result.kind = kind;
  result.lr = 0.5;
  result.epochs = 50;
  result.steps_per_epoch = 100;
  return result;
}

TEST(Schedule, Constant) {
  EXPECT_EQ(learning_rate(options(LrSchedule::kConstant), 0), 0.5);
  EXPECT_EQ(learning_rate(options(LrSchedule::kConstant), 4999), 0.5);
}

TEST(Schedule, WarmupAndExponentialDecay) {
  ScheduleOptions o = options(LrSchedule::kWarmupAndExponentialDecay);
  EXPECT_EQ(learning_rate(o, 0), 0);
  EXPECT_DOUBLE_EQ(learning_rate(o, 45), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(o, 90), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(o, 1999), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(o, 2000), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(o, 4000), 0.02);
}

TEST(Schedule, CosineGoesFromRateToLeast) {
  ScheduleOptions o = options(LrSchedule::kCosine);
  o.warmup_epochs = 10;
  o.min_lr = 0.1;
  EXPECT_EQ(learning_rate(o, 0), 0);
  EXPECT_DOUBLE_EQ(learning_rate(o, 1000), 0.5);
  EXPECT_NEAR(learning_rate(o, 3000), 0.3, 1e-12);
  EXPECT_NEAR(learning_rate(o, 5000), 0.1, 1e-12);
  EXPECT_NEAR(learning_rate(o, 9000), 0.1, 1e-12);
}

TEST(Schedule, StepDividesEverySoOften) {
  ScheduleOptions o = options(LrSchedule::kStep);
  o.every_epochs = 10;
  o.divisor = 10;
  EXPECT_DOUBLE_EQ(learning_rate(o, 0), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(o, 999), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(o, 1000), 0.05);
}

TEST(Schedule, SenselessNumbersAreErrors) {
  EXPECT_TRUE(check(options(LrSchedule::kCosine)));
  ScheduleOptions o = options(LrSchedule::kStep);
  o.divisor = 0;
  EXPECT_THAT(check(o).error().what(), testing::HasSubstr("must be above 0, not 0 and 20"));
}

}  // namespace
}  // namespace sluice::train
