// What is said of training steps on the device "xla", beside counts by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"
#include "sluice/device/capture/capture.h"
#include "sluice/models/models.h"
#include "sluice/session/session.h"
#include "sluice/train/testing/small_training.h"
#include "sluice/train/trainer.h"

namespace sluice::train {
namespace {

Session xla_session(int devices = 1) {
  if (is_initialized()) shutdown();
  Options options;
  options.xla.plugin = "cpu";
  options.xla.devices = devices;
  return start(options);
}

// A training step of an encoder by the formula of appendix B of "PaLM" (Chowdhery and others, 2022): for each
// token 6 FLOPs for each weight of a matrix (2 forward, 4 backward), and 12 layers width positions for the
// attention. The embedding is a look-up and does not count; the head sees the mean over the positions, once a
// sequence.
double by_hand(const models::TransformerOptions& o, int64_t sequences, int64_t positions) {
  const auto weights = static_cast<double>(o.layers * (4 * o.width * o.width + 2 * o.width * o.feedforward));
  const auto attention = static_cast<double>(12 * o.layers * o.width * positions);
  const auto head = static_cast<double>(6 * o.width * o.classes);
  return static_cast<double>(sequences * positions) * (6 * weights + attention) +
         static_cast<double>(sequences) * head;
}

struct Job {
  models::TransformerOptions model;
  int64_t sequences = 4, positions = 24;
  int devices = 1, parts = 1;
  bool captured = false;
  int steps = 5;
};

StepRates train_transformer(const Job& job) {
  Session session = xla_session(job.devices);
  torch::manual_seed(3);
  auto model = models::transformer(job.model);
  model->to(session.device());
  torch::optim::SGD optimizer(model->parameters(), 0.01);
  session.prepare(*model, optimizer);
  const auto count = static_cast<int64_t>(job.steps) * job.parts * job.devices;
  std::vector<std::pair<torch::Tensor, torch::Tensor>> batches;
  for (int64_t i = 0; i < count; ++i)
    batches.emplace_back(torch::randint(job.model.vocabulary, {job.sequences, job.positions}, torch::kLong),
                         torch::randint(job.model.classes, {job.sequences}, torch::kLong));
  const auto step = [&](const torch::Tensor& x, const torch::Tensor& y) {
    auto loss = torch::nn::functional::cross_entropy(model->forward(x), y);
    loss.backward();
    session.step(optimizer);
    return loss.detach();
  };
  auto captured = sluice::capture(step);
  int64_t part = 0;
  for (auto& batch : session.feed(batches)) {
    std::optional<Accumulate> more;
    if (++part % job.parts != 0) more.emplace(session);
    if (job.captured)
      captured(batch.image, batch.label);
    else
      step(batch.image, batch.label);
  }
  session.finish();
  return session.step_rates(job.steps);
}

models::TransformerOptions six_layers() {
  return {.classes = 10,
          .layers = 6,
          .width = 32,
          .heads = 4,
          .feedforward = 64,
          .dropout = 0.1,
          .vocabulary = 100,
          .max_length = 24};
}

TEST(StepRates, FlopsOfATransformerAreThoseByHand) {
  Job job{.model = six_layers()};
  const double expected = by_hand(job.model, job.sequences, job.positions);
  const StepRates rates = train_transformer(job);
  ASSERT_TRUE(rates.flops_per_step);
  EXPECT_NEAR(*rates.flops_per_step / expected, 1, 0.01);
  EXPECT_GE(rates.steps, job.steps - 2);
  EXPECT_LE(rates.steps, job.steps - 1);
  // Time, rate and FLOPs fit each other.
  const double seconds = static_cast<double>(job.sequences) / *rates.examples_per_second;
  EXPECT_NEAR(*rates.flops_per_second * seconds / *rates.flops_per_step, 1, 1e-9);
  EXPECT_NEAR(*rates.tokens_per_second / *rates.examples_per_second, static_cast<double>(job.positions),
              1e-9);
  EXPECT_LE(*rates.p50_ms, *rates.p95_ms);
  EXPECT_FALSE(rates.memory_in_use);  // XLA's CPU plugin does not say
  // Without dropout the attention is one operation, whose gradient makes the scores again.
  job.model.dropout = 0;
  EXPECT_NEAR(*train_transformer(job).flops_per_step / expected, 1, 0.01);
}

TEST(StepRates, MfuIsFlopsByTimeAndPeak) {
  const Job job{.model = six_layers()};
  const StepRates rates = train_transformer(job);
  const std::string peak = xla_session().peak_text();
  if (peak.empty()) GTEST_SKIP() << "this processor has no fast kernel whose speed would be the peak";
  EXPECT_THAT(peak, testing::ContainsRegex("^[0-9.]+ [GT]FLOP/s f32 \\(measured on [0-9]+ thread"));
  ASSERT_TRUE(rates.mfu);
  const double of_peak = std::stod(peak) * (peak.find(" T") == std::string::npos ? 1e9 : 1e12);
  EXPECT_NEAR(*rates.mfu, *rates.flops_per_second / of_peak, 0.01 * *rates.mfu);  // the text has three digits
}

TEST(StepRates, FlopsAreOfOneReplicaAndOfAllParts) {
  Job job{.model = six_layers()};
  job.model.layers = 1;
  const double expected = by_hand(job.model, job.sequences, job.positions);
  job.devices = 2;
  StepRates rates = train_transformer(job);
  EXPECT_NEAR(*rates.flops_per_step / expected, 1, 0.01);
  EXPECT_NEAR(*rates.examples_per_second * static_cast<double>(job.positions), *rates.tokens_per_second,
              1e-6);
  job.devices = 1;
  job.parts = 3;
  EXPECT_NEAR(*train_transformer(job).flops_per_step / (3 * expected), 1, 0.01);
  job.parts = 1;
  job.captured = true;
  job.steps = 12;
  rates = train_transformer(job);
  EXPECT_GT(counters().replays, 0);
  EXPECT_NEAR(*rates.flops_per_step / expected, 1, 0.01);
}

// The FLOPs of a step, from the lines of a whole training: with tests between its epochs, and whatever the
// distance of the lines.
TEST(StepRates, OfATrainingAreTheSameWithAnyLogSteps) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  std::vector<double> found;
  for (const int64_t distance : {1, 3}) {
    if (is_initialized()) shutdown();
    TrainOptions options = small_training_on_xla(folder.path(std::to_string(distance)));
    options.log_steps = distance;
    testing::internal::CaptureStdout();
    train(options);
    const std::string out = testing::internal::GetCapturedStdout();
    EXPECT_THAT(out, testing::ContainsRegex(" StepMs=[0-9.]+/[0-9.]+ TFLOP/s=[0-9.]+ .*Input=[0-9]+%\n"));
    const std::string csv = base::value_or_throw(base::read_file(options.logdir + "/metrics.csv"));
    const auto lines = base::split(csv, '\n');
    const auto columns = base::split(lines[0], ',');
    const auto column = [&](const std::vector<std::string>& cells, const char* name) {
      return cells[static_cast<size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin())];
    };
    int rows = 0;
    for (size_t i = 1; i < lines.size(); ++i) {
      const auto cells = base::split(lines[i], ',');
      if (cells.size() != columns.size() || column(cells, "flops_per_second").empty()) continue;
      ++rows;
      if (distance > 1) continue;
      // Of one step: its FLOPs are rate times time.
      found.push_back(std::stod(column(cells, "flops_per_second")) * std::stod(column(cells, "step_p50_ms")) /
                      1000);
    }
    EXPECT_EQ(rows, distance == 1 ? 24 - 1 : 8) << csv;
  }
  // Three layers, 64 → 1024 → 1024 → 4, on batches of 16: the result, the gradient of the weight and, but for
  // the first, that of what goes in.
  const double expected = 2.0 * 16 * (2 * 64 * 1024 + 3 * 1024 * 1024 + 3 * 1024 * 4);
  for (const double flops : found) EXPECT_NEAR(flops / expected, 1, 1e-6);
}

// `--summary` says of each layer what the step of all parts needs on one replica.
TEST(StepRates, OfLayersStandInTheSummary) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  if (is_initialized()) shutdown();
  TrainOptions options = small_training_on_xla(folder.path("log"));
  options.summary = 1;
  options.accumulate = 2;
  testing::internal::CaptureStdout();
  train(options);
  const std::string out = testing::internal::GetCapturedStdout();
  EXPECT_THAT(out, testing::ContainsRegex("\nlayer +type +parameters +trained +memory +forward +backward"));
  // 64 → 1024 → 1024 → 4 on two batches of 16; the first layer needs no gradient of what goes in.
  for (const std::string line : {"fc1 .* 4.19 MFLOP +4.19 MFLOP", "fc2 .* 67.1 MFLOP +134 MFLOP",
                                 "fc .* 262 kFLOP +524 kFLOP", "total .* 71.6 MFLOP +139 MFLOP"})
    EXPECT_THAT(out, testing::ContainsRegex("\n" + line + " +[0-9.]+ [KM]?i?B\n"));
  EXPECT_THAT(out, testing::ContainsRegex("The first step needs about [0-9.]+ MiB on a replica: "));
}

}  // namespace
}  // namespace sluice::train
