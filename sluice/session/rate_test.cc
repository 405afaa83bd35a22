#include "sluice/session/rate.h"

#include <gtest/gtest.h>

#include "sluice/session/log_line.h"
#include "sluice/session/step_meter.h"

namespace sluice::sessions {
namespace {

// 4 replicas of this process take 400 examples a second, then 800: a replica 100 and 200.
TEST(RateTracker, TellsTheRatesOfOneReplica) {
  RateTracker tracker(10, 4);
  tracker.add(400);
  Rates rates = tracker.take(11);
  EXPECT_DOUBLE_EQ(rates.rate, 100);
  EXPECT_DOUBLE_EQ(rates.global_rate, 100);
  tracker.add(800);
  rates = tracker.take(12);
  EXPECT_DOUBLE_EQ(rates.rate, 0.4 * 100 + 0.6 * 200);
  EXPECT_DOUBLE_EQ(rates.global_rate, 150);
  EXPECT_DOUBLE_EQ(tracker.process_rate(12), 600);
  EXPECT_DOUBLE_EQ(tracker.take(12).rate, rates.rate);  // no time has passed
}

TEST(StepMeter, CountsTheBatchesOfSteps) {
  StepMeter meter(0, 2);
  const auto train = std::make_shared<const StepMeter::Source>(StepMeter::Source{7, 10});
  const auto test = std::make_shared<const StepMeter::Source>(StepMeter::Source{0, 12});
  for (int i = 0; i < 2; ++i) {
    meter.hand_out(train, {.examples = 32}, 10);
    meter.step(10);
  }
  EXPECT_EQ(meter.epoch(), 7);
  EXPECT_DOUBLE_EQ(meter.take(12).global_rate, 64 / 2.0 / 2);  // seconds, replicas
  meter.hand_out(test, {.examples = 1000}, 12);                // no step follows
  meter.hand_out(train, {.examples = 32}, 12);
  meter.step(12);
  EXPECT_EQ(meter.epoch(), 7);
  EXPECT_DOUBLE_EQ(meter.take(14).global_rate, 96 / 4.0 / 2);

  // The next epoch begins again; a feed without a number is the one after.
  meter.hand_out(std::make_shared<const StepMeter::Source>(StepMeter::Source{-1, 20}), {.examples = 32}, 20);
  meter.step(20);
  EXPECT_EQ(meter.epoch(), 8);
  EXPECT_DOUBLE_EQ(meter.take(21).rate, 16);
}

TEST(LogLine, IsTheLineOfTheOriginal) {
  EXPECT_EQ(text_of({.device = at::Device("xla:0"),
                     .process = 2,
                     .epoch = 8,
                     .step = 310,
                     .values = {{"Loss", 0.267581}},
                     .rates = {1079.012, 1420.668},
                     .time = "18:02:10"}),
            "| Training Device=xla:0/2 Epoch=8 Step=310 Loss=0.26758 Rate=1079.01 GlobalRate=1420.67 "
            "Time=18:02:10");
}

TEST(LogLine, HasBehindItWhatIsKnownOfTheSteps) {
  LogLine line{.device = at::Device("xla:0"),
               .process = 2,
               .epoch = 8,
               .step = 310,
               .values = {{"Loss", 0.267581}},
               .rates = {1079.012, 1420.668},
               .time = "18:02:10"};
  const std::string original = text_of(line);
  line.steps = {.steps = 20, .p50_ms = 9.1234, .p95_ms = 12.06, .input_share = 0.018};
  EXPECT_EQ(text_of(line), original + " StepMs=9.12/12.1 Input=2%");
  line.steps = {.steps = 20,
                .p50_ms = 118.2,
                .p95_ms = 121.9,
                .flops_per_second = 64.12e12,
                .mfu = 0.5214,
                .input_share = 0.018,
                .memory_in_use = 10'952'166'000,
                .memory_peak = 14'066'000'000};
  const std::string all = text_of(line);
  EXPECT_EQ(all, original + " StepMs=118/122 TFLOP/s=64.1 MFU=52.1% GiB=10.2/13.1 Input=2%");
  EXPECT_LE(all.size(), 165u);
  line.steps = {.tokens_per_second = 123456, .flops_per_second = 0.1181e12};
  EXPECT_EQ(text_of(line), original + " Tokens/s=123456 TFLOP/s=0.118");
  line.steps = {.mfu = 0.5214, .causal_mfu = 0.4876};
  EXPECT_EQ(text_of(line), original + " MFU=52.1% CausalMFU=48.8%");
}

}  // namespace
}  // namespace sluice::sessions
