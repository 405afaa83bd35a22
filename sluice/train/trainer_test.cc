#include "sluice/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/train/optimizers/optimizers.h"
#include "sluice/train/testing/run_training.h"

namespace sluice::train {
namespace {

TEST(Trainer, LearnsLogsAndSaves) {
  auto folder = scratch();
  TrainResult result;
  const std::string out = capture(small_training(folder.path("run")), &result);
  EXPECT_EQ(result.exit_status, kDone);
  EXPECT_EQ(result.steps, 24);  // 12 full batches of 16 in 200 samples
  EXPECT_GT(result.best_accuracy, 80);
  EXPECT_THAT(out, testing::HasSubstr("batch 16 × 1 replica × accumulate 1 = 16\n"));
  EXPECT_THAT(out, testing::HasSubstr("2 epochs; 8 samples left out of each epoch\n"));
  EXPECT_THAT(out,
              testing::ContainsRegex("\\| Training Device=cpu/0 Epoch=1 Step=5 Loss=[0-9.]+ Rate=[0-9.]+ "
                                     "GlobalRate=[0-9.]+ Time=[0-9]+:[0-9]+:[0-9]+ StepMs=[0-9.]+/[0-9.]+ "
                                     "Input=[0-9]+%\n"));
  EXPECT_THAT(out, testing::ContainsRegex(
                       "Epoch 2 train end [0-9:]+, Epoch Time=0:00:[0-9]+, Replica Train Samples=192, "
                       "Reduced GlobalRate=[0-9.]+\n"));
  EXPECT_THAT(out, testing::HasSubstr(", Samples=50, "));
  EXPECT_THAT(out, testing::ContainsRegex(
                       "Total Train Time: 0:00:[0-9]+\nMax Accuracy: [0-9.]+%\nAvg. Global Rate: [0-9.]+ "
                       "examples per second\n"));
  // Lines are counted within the epoch.
  for (const char* at : {"Epoch=1 Step=5 ", "Epoch=1 Step=10 ", "Epoch=2 Step=5 ", "Epoch=2 Step=10 "})
    EXPECT_THAT(out, testing::HasSubstr(at));
  EXPECT_THAT(out, testing::Not(testing::ContainsRegex("Step=[123468] ")));
  for (const char* name :
       {"run/last/model.safetensors", "run/best/model.safetensors", "run/metrics.csv", "run/metrics.jsonl"})
    EXPECT_TRUE(base::path_exists(folder.path(name))) << name;
}

TEST(Trainer, AMissedTargetHasAStatusOfItsOwn) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("run"));
  options.target_accuracy = 99;
  options.lr = 0;
  TrainResult result;
  EXPECT_THAT(capture(options, &result), testing::HasSubstr("The target accuracy of 99.00% was missed."));
  EXPECT_EQ(result.exit_status, kTargetMissed);
}

TEST(Trainer, AnAccumulatedUpdateTakesSeveralBatches) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("big"));
  options.epochs = 1;
  options.steps_per_epoch = 3;
  options.save_steps = 2;
  TrainResult result;
  options.batch_size = 8;
  options.accumulate = 2;
  EXPECT_THAT(capture(options, &result), testing::HasSubstr("batch 8 × 1 replica × accumulate 2 = 16"));
  EXPECT_EQ(result.steps, 3);
  const std::string csv = base::value_or_throw(base::read_file(folder.path("big/metrics.csv")));
  EXPECT_THAT(csv, testing::HasSubstr(",test,1,3,"));
}

TEST(Trainer, AnEpochShorterThanTheLogStepsHasALine) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("run"));
  options.log_steps = 100;
  TrainResult result;
  const std::string out = capture(options, &result);
  EXPECT_THAT(out, testing::HasSubstr("Epoch=1 Step=12 "));
  EXPECT_THAT(out, testing::HasSubstr("Epoch=2 Step=12 "));
}

TEST(Trainer, TokenFilesAreNoShards) {
  auto folder = scratch();
  for (const char* const name : {"a.bin", "a.idx"})
    base::value_or_throw(base::write_file_atomically(folder.path(name), "x"));
  EXPECT_THAT(
      refusal(small_training_on(folder.path("*.bin"), folder.path("run"))),
      testing::HasSubstr("--task images wants shards (.tar), found token files: " + folder.path("a.bin")));
}

TEST(Trainer, JsonGoesToStandardOutputAlone) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("run"));
  options.json = true;
  TrainResult result;
  testing::internal::CaptureStderr();
  const std::string out = capture(options, &result);
  testing::internal::GetCapturedStderr();
  for (const auto& line : base::split(out, '\n')) EXPECT_TRUE(line.empty() || line.front() == '{') << line;
  EXPECT_THAT(out, testing::HasSubstr("\"event\":\"end\""));
}

TEST(Trainer, TakesAnyModule) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("run"));
  options.epochs = 1;
  Trainer trainer(options);
  EXPECT_EQ(trainer.image_size(), 8);
  torch::nn::Sequential model(torch::nn::Flatten(), torch::nn::Linear(64, 4));
  testing::internal::CaptureStdout();
  EXPECT_EQ(trainer.fit(model).exit_status, kDone);
  testing::internal::GetCapturedStdout();
}

TEST(Trainer, AMixtureSaysWhatItTook) {
  auto folder = scratch();
  TrainOptions options = small_training_on("", folder.path("run"));
  options.mix = {{write_shard(folder.path("a.tar")), 0.75}, {write_shard(folder.path("b.tar")), 0.25}};
  options.batch_size = 16;
  options.epoch_samples = 64;
  options.epochs = 2;
  options.mix_from = {{6, {0, 1}}};
  TrainResult result;
  const std::string out = capture(options, &result);
  EXPECT_THAT(out, testing::HasSubstr("4 steps an epoch, 2 epochs; a mixture of 2 sets"));
  EXPECT_THAT(out, testing::HasSubstr("Epoch 1 took 48 samples of " + options.mix[0].shards + " (75.0 %, "));
  EXPECT_THAT(out, testing::HasSubstr("Epoch 2 took 24 samples of " + options.mix[0].shards + " (37.5 %, "));
  // An epoch of fewer steps takes less, and leaves nothing out.
  options.steps_per_epoch = 2;
  EXPECT_THAT(capture(options, &result), testing::HasSubstr("Epoch 1 took 24 samples of "));
  // Steps of several batches: an epoch has whole ones, and shares change with a step.
  options.steps_per_epoch = 0;
  options.accumulate = 3;
  options.mix_from = {{1, {0, 1}}};
  const std::string accumulated = capture(options, &result);
  EXPECT_THAT(accumulated, testing::HasSubstr("Epoch 1 took 36 samples of "));
  EXPECT_THAT(accumulated, testing::HasSubstr("Epoch 2 took 0 samples of "));
  options.train = options.mix[0].shards;
  EXPECT_THROW(check(options), Error);
}

TEST(Trainer, TestsNowAndThenAndInPart) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("run"));
  options.epochs = 5;
  options.test_every_epochs = 2;
  options.limit_test_batches = 2;
  TrainResult result;
  const std::string out = capture(options, &result);
  for (const char* epoch : {"2", "4", "5"})
    EXPECT_THAT(out, testing::ContainsRegex(base::str("Epoch ", epoch, " test end [0-9:]+, Samples=32, ")));
  for (const char* epoch : {"1", "3"})
    EXPECT_THAT(out, testing::Not(testing::HasSubstr(base::str("Epoch ", epoch, " test end"))));
}

// With a learning rate of 0 equal batches have equal losses, whatever is drawn for them.
TEST(Trainer, OverfitTakesTheSameBatchesInEveryEpoch) {
  auto folder = scratch();
  TrainOptions options = small_training_on(write_shard(folder.path("a.tar")), folder.path("run"));
  options.batch_size = 4;
  options.epochs = 3;
  options.lr = 0;
  options.flip = true;
  options.crop = 8;
  options.log_steps = 1;
  options.overfit_batches = 2;
  TrainResult result;
  const auto losses = [&] {
    std::vector<std::string> found;
    std::istringstream lines(capture(options, &result));
    for (std::string line; std::getline(lines, line);)
      if (const size_t at = line.find(" Loss="); at != std::string::npos && line[0] == '|')
        found.push_back(line.substr(at, line.find(" Rate=") - at));
    return found;
  };
  const auto equal = losses();
  ASSERT_EQ(equal.size(), 6u);
  EXPECT_NE(equal[0], equal[1]);
  EXPECT_EQ(equal[2], equal[0]);
  EXPECT_EQ(equal[5], equal[1]);
  options.overfit_batches = 0;
  options.steps_per_epoch = 2;
  const auto changing = losses();
  ASSERT_EQ(changing.size(), 6u);
  EXPECT_NE(changing[2], changing[0]);
}

TEST(Trainer, ATrialKeepsNothing) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("run"));
  options.fast_dev_run = 3;
  options.epochs = 50;
  options.target_accuracy = 100;
  TrainResult result;
  const std::string out = capture(options, &result);
  EXPECT_EQ(result.steps, 3);
  EXPECT_EQ(result.exit_status, kDone);
  EXPECT_THAT(out, testing::HasSubstr("Samples=48, "));
  EXPECT_THAT(out, testing::HasSubstr("The trial of 3 steps and their test succeeded; no file was kept.\n"));
  EXPECT_FALSE(base::path_exists(folder.path("run")));
  options.resume.from_last = true;
  EXPECT_THROW(check(options), Error);
}

TEST(Trainer, ASweepOfBatchSizesEndsWithTheDataAndKeepsNothing) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("run"));
  options.batch_size = 4;
  options.find_batch_size = true;
  TrainResult result;
  const std::string out = capture(options, &result);
  EXPECT_EQ(result.exit_status, kDone);
  EXPECT_THAT(out,
              testing::ContainsRegex("^BatchSize=4, GlobalRate=[0-9.]+, Memory=[0-9.]+ [MG]iB of [0-9.]+ "
                                     "GiB\nBatchSize=8, "));
  EXPECT_THAT(out, testing::ContainsRegex("The sweep ended: .*\\. Suggestion: --batch-size [0-9]+\n$"));
  EXPECT_FALSE(base::path_exists(folder.path("run")));
  options.batch_size = 1000;
  try {
    train(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("batch"));
  }
  options.find_lr = true;
  EXPECT_THROW(check(options), Error);
  options.find_lr = false;
  options.global_batch_size = 64;
  EXPECT_THROW(check(options), Error);
}

// One step by hand: the groups, and what the flags change in them.
TEST(Optimizers, AreWhatTheOptionsSay) {
  TrainOptions options = small_training("unused");
  options.lr = 0.5;
  options.weight_decay = 0.1;
  const auto stepped = [&options] {
    const auto matrix = torch::full({1, 1}, 2.0, torch::requires_grad());
    const auto bias = torch::full({1}, 2.0, torch::requires_grad());
    auto optimizer = make_optimizer(options, {matrix, bias});
    matrix.mutable_grad() = torch::ones({1, 1});
    bias.mutable_grad() = torch::ones({1});
    optimizer->step();
    return std::pair(matrix.item<double>(), bias.item<double>());
  };
  options.optimizer = OptimizerKind::kSgd;
  options.momentum = 0.9;
  EXPECT_NEAR(stepped().first, 2 - 0.5 * (1 + 0.1 * 2), 1e-6);
  EXPECT_EQ(stepped().first, stepped().second);
  options.no_decay = true;
  EXPECT_NEAR(stepped().first, 2 - 0.5 * 1.2, 1e-6);
  EXPECT_NEAR(stepped().second, 2 - 0.5, 1e-6);
  options.nesterov = true;  // gradient + momentum · (buffer = gradient)
  EXPECT_NEAR(stepped().second, 2 - 0.5 * 1.9, 1e-6);
  options.nesterov = false;
  options.optimizer = OptimizerKind::kAdamW;
  options.eps = 1;  // the step is lr · 1 / (1 + eps)
  EXPECT_NEAR(stepped().second, 2 - 0.25, 1e-6);
  EXPECT_NEAR(stepped().first, 2 * (1 - 0.5 * 0.1) - 0.25, 1e-6);
  options.betas = {0.5, 0.75};
  const auto made = make_optimizer(options, {torch::zeros({2, 2}, torch::requires_grad())});
  const auto& adamw = static_cast<const torch::optim::AdamWOptions&>(made->param_groups()[0].options());
  EXPECT_EQ(adamw.betas(), std::make_tuple(0.5, 0.75));
  EXPECT_EQ(adamw.eps(), 1);
  for (const OptimizerKind kind : {OptimizerKind::kRmsProp, OptimizerKind::kAdagrad}) {
    options.optimizer = kind;
    EXPECT_LT(stepped().second, 2);
    EXPECT_NE(stepped().first, stepped().second);  // but one decays
  }
}

TEST(Trainer, SenselessOptionsAreErrors) {
  auto message = [](auto change) {
    TrainOptions options = small_training("unused");
    change(options);
    try {
      check(options);
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(message([](TrainOptions&) {}), "");
  EXPECT_THAT(message([](TrainOptions& o) { o.model = "resnet19"; }),
              testing::HasSubstr("did you mean \"resnet1"));
  EXPECT_THAT(message([](TrainOptions& o) { o.model = ""; }), testing::HasSubstr("--model"));
  EXPECT_THAT(message([](TrainOptions& o) { o.remainder = Remainder::kKeep; }),
              testing::HasSubstr("--remainder is drop, carry or pad"));
  EXPECT_THAT(message([](TrainOptions& o) { o.fake_data = false; }), testing::HasSubstr("--train"));
  EXPECT_THAT(message([](TrainOptions& o) { o.classes = 0; }), testing::HasSubstr("--classes"));
  EXPECT_THAT(message([](TrainOptions& o) { o.metrics = {{.k = 5}}; }), testing::HasSubstr("there are 4"));
  EXPECT_THAT(message([](TrainOptions& o) { o.metrics = {{.k = 0}}; }),
              testing::HasSubstr("--metrics: there is no metric \"top0\""));
  EXPECT_THAT(message([](TrainOptions& o) { o.batch_size = 0; }), testing::HasSubstr("--batch-size"));
  EXPECT_THAT(message([](TrainOptions& o) { o.betas = {0.9, 1}; }), testing::HasSubstr("--betas"));
  EXPECT_THAT(message([](TrainOptions& o) { o.clip_norm = o.clip_value = 1; }),
              testing::HasSubstr("give one of them"));
  EXPECT_THAT(message([](TrainOptions& o) { o.warmup_epochs = o.warmup_steps = 1; }),
              testing::HasSubstr("give one of them"));
  EXPECT_THAT(message([](TrainOptions& o) { o.nesterov = true, o.momentum = 0; }),
              testing::HasSubstr("--nesterov"));
  EXPECT_THAT(message([](TrainOptions& o) { o.overfit_batches = 3, o.accumulate = 2; }),
              testing::HasSubstr("not a multiple of --accumulate 2"));
  EXPECT_THAT(message([](TrainOptions& o) { o.test_every_epochs = 0; }),
              testing::HasSubstr("--test-every-epochs must be at least 1"));
  const auto expect = [&](auto change, const char* said) {
    EXPECT_THAT(message(change), testing::HasSubstr(said));
  };
  using Options = TrainOptions;
  expect([](Options& o) { o.epochs = INT64_MAX; },
         "--epochs must be at most 9007199254740992, not 9223372036854775807 or");
  expect([](Options& o) { o.label_smoothing = 3; },
         "--label-smoothing takes a share of 0 or more and below 1, not 3");
  expect([](Options& o) { o.weight_decay = -1; }, "--weight-decay takes a number of 0 or more, not -1");
  expect([](Options& o) { o.momentum = -1; }, "--momentum takes a number of 0 or more and below 1, not -1");
  expect([](Options& o) { o.momentum = 1; }, "--momentum takes");
  expect([](Options& o) { o.lr = INFINITY; }, "--lr takes a number of 0 or more, not inf");
  expect([](Options& o) { o.lr = NAN; }, "--lr takes");
  expect([](Options& o) { o.min_lr = 1, o.lr_schedule = LrSchedule::kCosine; },
         "--min-lr 1 is above --lr 0.05");
  expect([](Options& o) { o.target_accuracy = 101; }, "--target-accuracy takes per cent, 0 to 100, not 101");
  expect(
      [](Options& o) { o.max_bad = {.amount = 0.5, .percent = false}; },
      "--max-bad takes a share of at most 100%, such as 0.1%, or a number of samples, such as 25, not '0.5'");
  expect([](Options& o) { o.max_bad = {.amount = 101}; }, "--max-bad");
  expect([](Options& o) { o.max_bad = {.amount = NAN}; }, "--max-bad");
  expect([](Options& o) { o.profile = {.first = 3, .end = 3}; }, "--profile 3:3: expected FIRST:END");
  expect([](Options& o) { o.profile = {.first = 3}; }, "--profile 3:0: expected FIRST:END");
  expect([](Options& o) { o.shapes = {{8, 0}}; }, "--shapes: the shapes '8x0': expected ROWSxLENGTH");
  expect([](Options& o) { o.image_size = 0; }, "--image-size must be at least 1, not 0");
  expect([](Options& o) { o.test_size = -1; }, "--test-size must be at least 0, not -1");
  expect([](Options& o) { o.streams = 0; }, "--streams takes a number of 1 to 65536, not 0");
  expect([](Options& o) { o.shuffle = -1; }, "--shuffle must be at least 0, not -1");
  expect([](Options& o) { o.deviation = {0}; },
         "--std takes numbers above 0 and up to 1, of pixels in 0…1, not 0");
  expect([](Options& o) { o.mean = {127}; }, "--mean takes numbers of 0 to 1, of pixels in 0…1, not 127");
  expect([](Options& o) { o.lr_schedule = LrSchedule::kInverseSqrt; }, "give --warmup-steps");
  expect([](Options& o) { o.patience = 2, o.test_size = 0; }, "--patience counts tests");
  expect([](Options& o) { o.devices = 2; }, "--device cpu is LibTorch's own and has one replica");
  expect([](Options& o) { o.device = DeviceKind::kXla, o.plugin = "cdua"; }, "unknown plugin 'cdua'");
  expect([](Options& o) { o.classes = 1'000'000'000'000; }, "the last layer of mlp takes ");
  const auto mixed = [](Options& o, double a, double b) {
    o.fake_data = false;
    o.mix = {{"a.tar", a}, {"b.tar", b}};
  };
  expect([&](Options& o) { mixed(o, -1, 2); }, "--mix a.tar=-1 takes a share of 0 or more, not -1");
  expect([&](Options& o) { mixed(o, 0, 0); }, "--mix: all shares are 0");
  expect([&](Options& o) { mixed(o, 1, 0), o.mix_by = MixBy::kRepeat; },
         "--mix b.tar=0 takes a number above 0");
  expect([&](Options& o) { mixed(o, 1, 0), o.mix_from = {{5, {1}}}; }, "--mix-from 5=1: expected 2 shares");
  EXPECT_EQ(message([&](Options& o) { mixed(o, 1, 0), o.mix_from = {{5, {0.5, 0.5}}}; }), "");
  EXPECT_EQ(message([](Options& o) { o.plugin = "cpu", o.device = DeviceKind::kXla; }), "");
  TrainOptions options = small_training("unused");
  options.global_batch_size = 100;
  EXPECT_THROW(rows_per_replica(options, 3), Error);
  EXPECT_EQ(rows_per_replica(options, 4), 25);
}

}  // namespace
}  // namespace sluice::train
