#include "sluice/session/rates/step_log.h"

#include <gtest/gtest.h>

#include <thread>

#include "sluice/session/rates/rates_of.h"
#include "sluice/session/step_meter.h"

namespace sluice::sessions {
namespace {

StepWork work(double f32 = 0) {
  return {.examples = 32, .starving = 0.01, .flops = stablehlo::Flops{.f32 = f32}};
}

// Steps that end at these moments.
void add(StepLog& log, std::initializer_list<double> ends, double f32 = 0) {
  for (const double end : ends) log.step(work(f32))(end);
}

TEST(StepLog, MeasuresFromEndToEnd) {
  StepLog log;
  StepLog::Reader reader;
  log.step(work(), /*counts=*/false)(10);  // it compiled
  add(log, {11, 13, 14});
  const StepWindow window = log.take(reader);
  EXPECT_EQ(window.steps, 3);
  EXPECT_DOUBLE_EQ(window.seconds, 4);
  EXPECT_DOUBLE_EQ(window.p50, 1);
  EXPECT_DOUBLE_EQ(window.p95, 2);
  EXPECT_EQ(window.work.examples, 96);
  EXPECT_DOUBLE_EQ(window.work.starving, 0.03);
  EXPECT_EQ(log.take(reader).steps, 0);
}

TEST(StepLog, QuantilesAreThoseOfTheSteps) {
  StepLog log;
  StepLog::Reader reader;
  double now = 1;
  log.begin(now);
  for (int i = 100; i >= 1; --i) log.step(work())(now += i);
  const StepWindow window = log.take(reader);
  EXPECT_EQ(window.steps, 100);
  EXPECT_DOUBLE_EQ(window.p50, 50);
  EXPECT_DOUBLE_EQ(window.p95, 95);
}

// The time of an evaluation between two epochs is no step's.
TEST(StepLog, BeginsAgainWithAnEpoch) {
  StepLog log;
  StepLog::Reader reader;
  log.begin(1);
  add(log, {2, 3});
  log.begin(100);
  add(log, {101.5, 102.5});
  EXPECT_DOUBLE_EQ(log.take(reader).seconds, 1 + 1 + 1.5 + 1);
  // The device still works on the step before when the host begins with the next.
  log.begin(102);
  add(log, {104});
  EXPECT_DOUBLE_EQ(log.take(reader).seconds, 1.5);
}

// Word of a step's end may come late, from another thread, and out of order.
TEST(StepLog, TakesStepsInTheirOrder) {
  StepLog log;
  StepLog::Reader line, status;
  log.begin(1);
  const auto first = log.step(work()), second = log.step(work()), third = log.step(work());
  second(3);
  EXPECT_EQ(log.take(status).steps, 0);
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    first(2);
  });
  EXPECT_EQ(log.take(line, 2).steps, 2);
  late.join();
  third(4);
  EXPECT_EQ(log.take(line, 2).steps, 0);
  EXPECT_EQ(log.take(line, 3).steps, 1);
  EXPECT_EQ(log.take(status).steps, 3);
}

TEST(StepLog, KeepsTheLastSteps) {
  StepLog log;
  StepLog::Reader reader;
  double now = 1;
  log.begin(now);
  for (int64_t i = 0; i < StepLog::kKept + 10; ++i) log.step(work())(now += 1);
  EXPECT_EQ(log.take(reader).steps, StepLog::kKept);
}

constexpr double kPeak = 100e9;

StepRates rates(StepLog& log, StepLog::Reader& reader, std::optional<int64_t> until = {}, int processes = 1) {
  return rates_of(log.take(reader, until), processes, estimate::Peak{.f32 = kPeak, .source = "measured"}, {});
}

// A made-up clock: steps of 0.2 s and 0.3 s in turns with 10 GFLOP each, so 40 GFLOP/s of 100, whatever the
// lines' distance.
TEST(Rates, DoNotDependOnTheDistanceOfLines) {
  constexpr int kSteps = 120;
  for (const int distance : {1, 2, 10, 30, 120}) {
    StepLog log;
    StepLog::Reader reader;
    double now = 5, seconds_of_mfu = 0, seconds = 0;
    log.step(work(10e9), /*counts=*/false)(now);
    for (int i = 1; i <= kSteps; ++i) {
      log.step(work(10e9))(now += i % 2 == 0 ? 0.3 : 0.2);
      if (i % distance != 0) continue;
      const StepRates line = rates(log, reader, i + 1);
      ASSERT_EQ(line.steps, distance);
      EXPECT_DOUBLE_EQ(*line.flops_per_step, 10e9);
      if (distance % 2 == 0) {
        EXPECT_NEAR(*line.mfu, 0.4, 1e-9);
      }
      const double of_line = static_cast<double>(line.steps) * *line.flops_per_step / *line.flops_per_second;
      seconds_of_mfu += *line.mfu * of_line;
      seconds += of_line;
    }
    EXPECT_NEAR(seconds_of_mfu / seconds, 0.4, 1e-9) << distance;
  }
}

TEST(Rates, SayNothingOfWhatIsNotKnown) {
  StepLog log;
  StepLog::Reader reader;
  StepRates none = rates(log, reader);
  EXPECT_EQ(none.steps, 0);
  EXPECT_FALSE(none.p50_ms || none.mfu || none.flops_per_second || none.memory_in_use || none.input_share);
  log.begin(1);
  log.step({})(2);  // LibTorch's own CPU, without a feed
  const StepRates eager = rates(log, reader);
  EXPECT_DOUBLE_EQ(*eager.p50_ms, 1000);
  EXPECT_DOUBLE_EQ(*eager.input_share, 0);
  EXPECT_FALSE(eager.mfu || eager.flops_per_second || eager.examples_per_second || eager.tokens_per_second);
  // FLOPs that are not all known, and those whose peak is not.
  log.step({.flops = stablehlo::Flops{.f32 = 1e9, .loops = 1}})(3);
  EXPECT_FALSE(rates(log, reader).flops_per_second);
  log.step({.flops = stablehlo::Flops{.f64 = 1e9}})(4);
  const StepRates doubles = rates(log, reader);
  EXPECT_DOUBLE_EQ(*doubles.flops_per_second, 1e9);
  EXPECT_FALSE(doubles.mfu);
}

TEST(Rates, AreOfAllProcessesAndOfOneReplica) {
  StepLog log;
  StepLog::Reader reader;
  log.begin(1);
  StepWork tokens = work(50e9);
  tokens.tokens = 4096;
  log.step(tokens)(2);
  const pjrt::MemoryStats memory{
      .in_use = 5, .peak = 7, .limit = std::nullopt, .reserved = {}, .largest_free = {}};
  const StepRates found = rates_of(log.take(reader), 4, estimate::Peak{.f32 = kPeak, .source = ""}, memory);
  EXPECT_DOUBLE_EQ(*found.examples_per_second, 4 * 32);
  EXPECT_DOUBLE_EQ(*found.tokens_per_second, 4 * 4096);
  EXPECT_DOUBLE_EQ(*found.flops_per_second, 50e9);
  EXPECT_DOUBLE_EQ(*found.mfu, 0.5);
  EXPECT_FALSE(found.causal_mfu);
  EXPECT_EQ(found.memory_in_use, 5);
  EXPECT_EQ(found.memory_peak, 7);
  EXPECT_FALSE(found.memory_limit);
}

// 20 of 50 GFLOP are causal attention's: with half of them there are 40.
TEST(Rates, CountCausalAttentionInFullAndInHalf) {
  StepLog log;
  StepLog::Reader reader;
  log.begin(1);
  StepWork attention = work(50e9);
  attention.flops->causal_f32 = 20e9;
  log.step(attention)(2);
  const StepRates found = rates_of(log.take(reader), 1, estimate::Peak{.f32 = kPeak, .source = ""}, {});
  EXPECT_DOUBLE_EQ(*found.mfu, 0.5);
  EXPECT_DOUBLE_EQ(*found.causal_mfu, 0.4);
  EXPECT_DOUBLE_EQ(*found.flops_per_second, 50e9);
}

using Source = StepMeter::Source;

TEST(StepMeter, LeavesEvaluationsOut) {
  StepMeter meter(0, 1);
  const auto train = std::make_shared<const Source>(Source{0, 10}),
             test = std::make_shared<const Source>(Source{0, 20});
  EXPECT_TRUE(meter.hand_out(train, {.examples = 8, .starving = 0.5}, 11));
  meter.step(11.5);
  EXPECT_EQ(meter.take_begin(), 10);  // with the wait for the epoch's first batch
  StepWork work = meter.take_work();
  EXPECT_EQ(work.examples, 8);
  EXPECT_DOUBLE_EQ(work.starving, 0.5);
  // An evaluation in the middle of the epoch.
  EXPECT_TRUE(meter.hand_out(test, {.examples = 100}, 21));
  EXPECT_FALSE(meter.hand_out(test, {.examples = 100, .starving = 3}, 24));
  EXPECT_TRUE(meter.hand_out(train, {.examples = 8, .tokens = 80, .starving = 0.25}, 30));
  meter.step(30.5);
  EXPECT_EQ(meter.take_begin(), 30 - 0.25);
  work = meter.take_work();
  EXPECT_EQ(work.examples, 8);
  EXPECT_EQ(work.tokens, 80);
  EXPECT_DOUBLE_EQ(work.starving, 0.25);
}

// A step that takes its batches from two feeds, and one of several parts.
TEST(StepMeter, CountsAllPartsOfAStep) {
  StepMeter meter(0, 1);
  const auto a = std::make_shared<const Source>(Source{0, 10}),
             b = std::make_shared<const Source>(Source{0, 10});
  for (int i = 0; i < 3; ++i) {
    const bool begins = meter.hand_out(a, {.examples = 8, .starving = 1}, 11);
    EXPECT_EQ(begins, i == 0);
    meter.hand_out(b, {.examples = 8, .starving = 1}, 12);
    meter.step(12);
    meter.hand_out(b, {.examples = 8, .starving = 1}, 13);
    meter.step(13);
    EXPECT_EQ(meter.take_begin(), i == 0 ? 10 : 0);
    const StepWork work = meter.take_work();
    EXPECT_EQ(work.examples, 16);
    EXPECT_DOUBLE_EQ(work.starving, i == 0 ? 2 : 3);
  }
}

}  // namespace
}  // namespace sluice::sessions
