#include "sluice/train/optimizers/schedule.h"

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

TEST(Schedule, LinearGoesFromRateToLeast) {
  ScheduleOptions o = options(LrSchedule::kLinear);
  o.warmup_epochs = 10;
  o.min_lr = 0.1;
  EXPECT_DOUBLE_EQ(learning_rate(o, 500), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(o, 1000), 0.5);
  EXPECT_NEAR(learning_rate(o, 3000), 0.3, 1e-12);
  EXPECT_NEAR(learning_rate(o, 5000), 0.1, 1e-12);
  EXPECT_NEAR(learning_rate(o, 9000), 0.1, 1e-12);
}

TEST(Schedule, InverseSqrtHasTheRateAtTheWarmupsEnd) {
  ScheduleOptions o = options(LrSchedule::kInverseSqrt);
  EXPECT_THAT(check(o).error().what(), testing::HasSubstr("--warmup-steps"));
  o.warmup_epochs = 4;
  o.min_lr = 0.2;
  ASSERT_TRUE(check(o));
  EXPECT_DOUBLE_EQ(learning_rate(o, 200), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(o, 400), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(o, 1600), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(o, 4900), 0.2);
}

TEST(Schedule, WsdStaysAndDecaysAtTheEnd) {
  ScheduleOptions o = options(LrSchedule::kWsd);
  o.warmup_epochs = 1;
  EXPECT_DOUBLE_EQ(learning_rate(o, 50), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(o, 100), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(o, 4500), 0.5);
  EXPECT_NEAR(learning_rate(o, 4750), 0.25, 1e-12);
  EXPECT_NEAR(learning_rate(o, 5000), 0, 1e-12);
  o.decay_epochs = 20;
  o.min_lr = 0.1;
  EXPECT_NEAR(learning_rate(o, 4000), 0.3, 1e-12);
  o.decay_epochs = 50;
  EXPECT_THAT(check(o).error().what(), testing::HasSubstr("more than the 50 epochs of the run"));
}

// What PyTorch's OneCycleLR(optimizer, max_lr=0.5, total_steps=1000) gives, also with pct_start=0.1.
TEST(Schedule, OneCycleIsPyTorchs) {
  ScheduleOptions o = options(LrSchedule::kOneCycle);
  o.epochs = 10;
  for (const auto& [step, rate] : {std::pair(0, 0.020000000000000018),
                                   {1, 0.02001324752108391},
                                   {100, 0.1407286807243449},
                                   {299, 0.5},
                                   {300, 0.49999748225807233},
                                   {500, 0.4049940507700897},
                                   {998, 4.5177419276849796e-06},
                                   {999, 2e-06}})
    EXPECT_NEAR(learning_rate(o, step), rate, 1e-12) << step;
  o.warmup_epochs = 1;
  for (const auto& [step, rate] :
       {std::pair(99, 0.5), {100, 0.49999847692053995}, {500, 0.29255320458200895}})
    EXPECT_NEAR(learning_rate(o, step), rate, 1e-12) << step;
}

TEST(Schedule, SenselessNumbersAreErrors) {
  EXPECT_TRUE(check(options(LrSchedule::kCosine)));
  ScheduleOptions o = options(LrSchedule::kStep);
  o.divisor = 0;
  EXPECT_THAT(check(o).error().what(), testing::HasSubstr("must be above 0, not 0 and 20"));
}

}  // namespace
}  // namespace sluice::train
