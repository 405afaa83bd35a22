#include "sluice/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sluice/base/files/file.h"
#include "sluice/data/shards/tar_writer.h"
#include "sluice/data/torch_adapter.h"
#include "sluice/metrics/parse_names.h"
#include "sluice/models/models.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/train/classification.h"
#include "sluice/train/evaluation/evaluate.h"
#include "sluice/train/loop/training.h"
#include "sluice/train/optimizers/optimizers.h"
#include "sluice/train/testing/small_training.h"

namespace sluice::train {
namespace {

base::TemporaryDirectory scratch() { return base::value_or_throw(base::TemporaryDirectory::create()); }

std::string capture(const TrainOptions& options, TrainResult* result) {
  testing::internal::CaptureStdout();
  try {
    *result = train(options);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  return testing::internal::GetCapturedStdout();
}

// What train() throws; "" when it goes well.
std::string refusal(const TrainOptions& options) {
  try {
    TrainResult result;
    capture(options, &result);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

bool same_weights(const std::string& a, const std::string& b) {
  const sessions::Checkpoint x = base::value_or_throw(sessions::read_checkpoint(a)),
                             y = base::value_or_throw(sessions::read_checkpoint(b));
  for (size_t i = 0; i < x.model.size(); ++i)
    if (!at::equal(x.model[i].second, y.model[i].second)) return false;
  return x.progress.step == y.progress.step && x.model.size() == y.model.size();
}

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

TEST(Trainer, AResumedRunIsTheUninterruptedOne) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("whole"));
  TrainResult result;
  options.model = "transformer";  // with dropout: random numbers must go on, too
  options.optimizer = OptimizerKind::kAdam;
  options.lr = 1e-3;
  options.train_size = 96;
  capture(options, &result);
  options.logdir = folder.path("parts");
  options.epochs = 1;
  capture(options, &result);
  EXPECT_EQ(result.steps, 6);
  options.epochs = 2;
  options.resume.from_last = true;
  const std::string out = capture(options, &result);
  EXPECT_THAT(out, testing::HasSubstr("Going on from"));
  EXPECT_TRUE(same_weights(folder.path("whole/last"), folder.path("parts/last")));
}

// A net that the process gets a SIGTERM in, in the forward pass of one of its steps.
struct Interrupted : torch::nn::Module {
  explicit Interrupted(int64_t step) : at(step) { register_module("net", net); }
  torch::Tensor forward(torch::Tensor x) {
    if (is_training() && ++steps == at) std::raise(SIGTERM);
    return net->forward(x);
  }
  const int64_t at;
  int64_t steps = 0;
  torch::nn::Sequential net{torch::nn::Flatten(), torch::nn::Linear(64, 16), torch::nn::ReLU(),
                            torch::nn::Linear(16, 4)};
};

TEST(Trainer, AStopInMidEpochSavesAndGoesOn) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("whole"));
  options.epochs = 1;
  const auto train_until = [&](int64_t step, TrainResult* result) {
    torch::manual_seed(options.seed);
    testing::internal::CaptureStdout();
    *result = Trainer(options).fit(std::make_shared<Interrupted>(step));
    return testing::internal::GetCapturedStdout();
  };
  TrainResult result;
  train_until(/*step=*/0, &result);
  EXPECT_EQ(result.exit_status, kDone);
  options.logdir = folder.path("parts");
  EXPECT_THAT(train_until(/*step=*/7, &result), testing::HasSubstr("Terminated: saved"));
  EXPECT_EQ(result.exit_status, kTerminated);
  EXPECT_EQ(result.steps, 7);
  EXPECT_FALSE(same_weights(folder.path("whole/last"), folder.path("parts/last")));
  options.resume.from_last = true;
  EXPECT_THAT(train_until(/*step=*/0, &result), testing::HasSubstr("epoch 1, step 7"));
  EXPECT_EQ(result.exit_status, kDone);
  EXPECT_EQ(result.steps, 12);
  EXPECT_TRUE(same_weights(folder.path("whole/last"), folder.path("parts/last")));
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

TEST(Trainer, ANanLossStopsAndKeepsTheLastGoodCheckpoint) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("run"));
  TrainResult result;
  options.epochs = 1;
  capture(options, &result);
  options.epochs = 2;
  options.resume.from_last = true;
  options.lr = 1e25;
  EXPECT_THAT(refusal(options),
              testing::AllOf(testing::HasSubstr("the loss is"),
                             testing::HasSubstr("The last good checkpoint is " + folder.path("run/last"))));
  EXPECT_EQ(base::value_or_throw(sessions::read_checkpoint(folder.path("run/last"))).progress.epoch, 1);
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

// Of the last row of a split that has one.
double last_accuracy(const std::string& folder, const std::string& split) {
  double found = -1;
  for (const auto& line :
       base::split(base::value_or_throw(base::read_file(base::join_path(folder, "metrics.csv"))), '\n')) {
    const auto cells = base::split(line, ',');
    if (cells.size() > 8 && cells[1] == split && !cells[8].empty()) found = std::stod(cells[8]);
  }
  return found;
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

TEST(Trainer, OtherModelsCheckpointIsAnError) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("run"));
  options.epochs = 1;
  TrainResult result;
  capture(options, &result);
  options.model = "lenet";
  options.image_size = 16;
  options.resume.folder = folder.path("run/last");
  EXPECT_THAT(refusal(options),
              testing::HasSubstr("is not of this model: the tensor conv1.weight is missing"));
}

TEST(Trainer, ResumingWithAnotherOptimizerIsAnError) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("run"));
  options.epochs = 1;
  TrainResult result;
  capture(options, &result);
  options.epochs = 2;
  options.resume.from_last = true;
  options.optimizer = OptimizerKind::kAdam;
  EXPECT_THAT(refusal(options),
              testing::HasSubstr(folder.path("run/last") + " holds the state of sgd, the run has adam: give "
                                                           "--optimizer sgd, or begin again"));
  options.optimizer = OptimizerKind::kSgd;
  EXPECT_EQ(refusal(options), "");
}

TEST(Trainer, AnIncompleteCheckpointIsNoFreshStart) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("run"));
  options.epochs = 1;
  TrainResult result;
  capture(options, &result);
  base::value_or_throw(base::remove_file(folder.path("run/last/state.json")));
  const auto weights = [&] { return *base::read_file(folder.path("run/last/model.safetensors")); };
  const std::string before = weights();
  options.epochs = 2;
  options.resume.from_last = true;
  EXPECT_THAT(refusal(options),
              testing::AllOf(testing::HasSubstr("run/last is not a whole checkpoint: state.json "),
                             testing::HasSubstr("--weights")));
  EXPECT_TRUE(weights() == before);
}

TEST(Trainer, NamesTheCheckpointsThatThereAre) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("run"));
  options.epochs = 0;
  TrainResult result;
  EXPECT_THAT(capture(options, &result),
              testing::HasSubstr("\nCheckpoints: none, no step was done; metrics: "));
  options.epochs = 1;
  options.test_size = 0;
  EXPECT_THAT(capture(options, &result),
              testing::HasSubstr("\nCheckpoints: " + folder.path("run/last") + "; metrics: "));
  options.test_size = 50;
  EXPECT_THAT(capture(options, &result),
              testing::HasSubstr("\nCheckpoints: " + folder.path("run/last") + " and " +
                                 folder.path("run/best") + "; metrics: "));
  // More steps than are counted: the end is not near, and --max-steps is before it.
  options.epochs = int64_t{1} << 53;
  options.max_steps = 2;
  capture(options, &result);
  EXPECT_EQ(result.steps, 2);
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

// 32 images of 8×8 in two classes.
std::string write_shard(const std::string& path) {
  std::string bytes;
  for (int i = 0; i < 32; ++i) {
    std::string pixels = "P6\n8 8\n255\n";
    for (int k = 0; k < 192; ++k) pixels += static_cast<char>((i * 37 + k * (i % 2 == 0 ? 1 : 11)) % 256);
    bytes += data::tar_member(base::str("s", i, ".ppm"), pixels);
    bytes += data::tar_member(base::str("s", i, ".cls"), std::to_string(i % 2));
  }
  base::value_or_throw(base::write_file_atomically(path, bytes + data::tar_end(bytes.size())));
  return path;
}

// With a model that does not change, training sees what the test sees, whatever pads the last batch.
TEST(Trainer, CountsWhatIsRightInTraining) {
  auto folder = scratch();
  for (const Remainder remainder : {Remainder::kDrop, Remainder::kPad}) {
    TrainOptions options =
        small_training_on(write_shard(folder.path("a.tar")), folder.path(name_of(remainder)));
    options.remainder = remainder;
    options.batch_size = remainder == Remainder::kPad ? 10 : 16;  // 8 of 40 rows are padding
    options.epochs = 1;
    options.lr = 0;
    TrainResult result;
    capture(options, &result);
    EXPECT_EQ(last_accuracy(options.logdir, "train"), last_accuracy(options.logdir, "test"))
        << name_of(remainder);
    EXPECT_GE(last_accuracy(options.logdir, "train"), 0);
  }
}

TEST(Trainer, MixedImagesHaveMixedLosses) {
  auto folder = scratch();
  TrainOptions options = small_training_on(write_shard(folder.path("a.tar")), folder.path("run"));
  options.batch_size = 32;
  options.mixup = 0.8;
  options.cutmix = 1;
  options.epochs = 1;
  options.log_steps = 1;
  options.lr = 0;  // the checkpoint has the weights of the first step
  TrainResult result;
  const std::string out = capture(options, &result);
  const auto place = out.find("Loss=");
  ASSERT_NE(place, std::string::npos) << out;
  const double reported = std::stod(out.substr(place + 5));

  auto model = models::create("mlp", {2, 3, 8});
  torch::NoGradGuard no_grad;
  const sessions::Checkpoint saved = base::value_or_throw(sessions::read_checkpoint(folder.path("run/last")));
  for (const auto& [name, value] : saved.model) model->named_parameters()[name].copy_(value);
  data::WebDataset dataset(options.train);
  dataset.images("ppm").labels("cls").seed(options.seed).mixup(0.8).cutmix(1).batch(32);
  dataset.shuffle(options.shuffle).interleave(options.streams);
  const auto batch = dataset.open(0)->next();
  ASSERT_TRUE(batch);
  const auto image = data::to_tensor(batch->image).to(torch::kFloat) / 255;
  const auto log_p = torch::log_softmax(model->forward((image - 0.5) / 0.25), 1);
  const auto own = data::to_tensor(batch->label), other = data::to_tensor(batch->other_label);
  const auto share = data::to_tensor(batch->own_share);
  EXPECT_LT(share.min().item<float>(), 0.9);
  const auto pick = [&](const torch::Tensor& label) {
    return -log_p.gather(1, label.unsqueeze(1)).squeeze(1);
  };
  const auto loss = (share * pick(own) + (1 - share) * pick(other)).mean();
  EXPECT_NEAR(reported, loss.item<double>(), 2e-5);
  // A mixed image is right when its larger part is.
  const auto right = log_p.argmax(1).eq(torch::where(share.ge(0.5), own, other));
  EXPECT_NEAR(last_accuracy(options.logdir, "train"), 100 * right.to(torch::kDouble).mean().item<double>(),
              1e-9);
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

TEST(Trainer, MaxStepsEndInMidEpochAndCanGoOn) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("whole"));
  options.lr_schedule = LrSchedule::kConstant;
  TrainResult result;
  capture(options, &result);
  options.logdir = folder.path("parts");
  options.max_steps = 17;  // 12 an epoch
  const std::string out = capture(options, &result);
  EXPECT_EQ(result.steps, 17);
  EXPECT_THAT(out, testing::HasSubstr("2 epochs, but 17 steps at most; "));
  EXPECT_THAT(out, testing::HasSubstr("Epoch 2 test end "));
  EXPECT_THAT(out, testing::HasSubstr("Replica Train Samples=80, "));
  options.resume.from_last = true;
  capture(options, &result);
  EXPECT_EQ(result.steps, 17);  // there is nothing left to do
  options.max_steps = 24;
  capture(options, &result);
  EXPECT_EQ(result.steps, 24);
  EXPECT_TRUE(same_weights(folder.path("whole/last"), folder.path("parts/last")));
  options.max_steps = 25;
  EXPECT_THROW(capture(options, &result), Error);  // two epochs have only 24
}

TEST(Trainer, MaxTimeEndsTestedAndSaved) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("run"));
  options.epochs = 100000;
  options.max_seconds = 0.5;
  TrainResult result;
  const std::string out = capture(options, &result);
  EXPECT_EQ(result.exit_status, kDone);
  EXPECT_GE(result.accuracy, 0);
  EXPECT_THAT(out, testing::HasSubstr("of --max-time are over at epoch "));
  const auto saved = base::value_or_throw(sessions::read_checkpoint(folder.path("run/last")));
  EXPECT_EQ(saved.progress.step, result.steps);
  // The time before a resume counts.
  options.resume.from_last = true;
  capture(options, &result);
  EXPECT_EQ(result.steps, saved.progress.step);
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

TEST(Trainer, AResumedRunKeepsItsGroups) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("whole"));
  options.no_decay = true;
  options.weight_decay = 0.1;
  TrainResult result;
  for (const OptimizerKind kind : {OptimizerKind::kAdamW, OptimizerKind::kRmsProp, OptimizerKind::kAdagrad}) {
    options.optimizer = kind;
    options.resume = {};
    options.lr = 1e-3;
    options.epochs = 2;
    options.logdir = folder.path("whole");
    capture(options, &result);
    options.logdir = folder.path("parts");
    options.epochs = 1;
    capture(options, &result);
    options.epochs = 2;
    options.resume.from_last = true;
    capture(options, &result);
    EXPECT_TRUE(same_weights(folder.path("whole/last"), folder.path("parts/last"))) << name_of(kind);
  }
}

TEST(Trainer, AConfusionMatrixNamesTheClassesOfItsShards) {
  auto folder = scratch();
  TrainOptions options = small_training_on(write_shard(folder.path("a.tar")), folder.path("run"));
  options.metrics = {{.kind = metrics::MetricName::Kind::kConfusion}};
  options.epochs = 1;
  options.test_batch_size = 10;  // 8 of 40 rows are padding
  TrainResult result;
  for (const char* names : {"even\n\"odd\"\n", "one\ntwo\nthree\n"}) {
    ASSERT_TRUE(base::write_file_atomically(folder.path("classes.txt"), names));
    capture(options, &result);
    const auto confusion =
        nlohmann::json::parse(base::value_or_throw(base::read_file(folder.path("run/confusion.json"))));
    EXPECT_EQ(confusion.contains("classes"), names[0] == 'e');  // three names are not those of two classes
    if (names[0] == 'e') {
      EXPECT_EQ(confusion["classes"].get<std::vector<std::string>>(),
                (std::vector<std::string>{"even", "\"odd\""}));
    }
    for (const auto& row : confusion["matrix"]) EXPECT_EQ(row[0].get<int>() + row[1].get<int>(), 16);
  }
}

// Names of files and classes are bytes: they come back as they were, and the JSON beside them is UTF-8.
TEST(Trainer, NamesMayBeAnyBytes) {
  auto folder = scratch();
  const std::string data = folder.path("d\xe9"), run = folder.path("r\xfcn");
  ASSERT_TRUE(base::make_directories(data));
  TrainOptions options = small_training_on(write_shard(base::join_path(data, "caf\xe9-0.tar")), run);
  options.config = "logdir=\"" + run + "\"\npattern=\"\\xe9\"\n";
  options.metrics = {{.kind = metrics::MetricName::Kind::kConfusion}};
  options.epochs = 1;
  options.test_batch_size = 10;
  options.json = true;
  ASSERT_TRUE(base::write_file_atomically(base::join_path(data, "classes.txt"), "\xe9ven\nodd\n"));
  TrainResult result;
  testing::internal::CaptureStderr();
  std::string out = capture(options, &result);
  options.epochs = 2;
  options.resume.from_last = true;
  out += capture(options, &result);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(result.exit_status, kDone);
  for (const auto& line : base::split(out, '\n'))
    EXPECT_TRUE(line.empty() || nlohmann::json::accept(line)) << line;
  const auto confusion =
      nlohmann::json::parse(base::value_or_throw(base::read_file(base::join_path(run, "confusion.json"))));
  EXPECT_EQ(confusion["classes"], (std::vector<std::string>{R"(\xe9ven)", "odd"}));
  const std::string last = base::join_path(run, "last");
  const auto state =
      nlohmann::json::parse(base::value_or_throw(base::read_file(base::join_path(last, "state.json"))));
  EXPECT_THAT(state["config"].get<std::string>(),
              testing::AllOf(testing::HasSubstr(R"(r\xfcn")"), testing::HasSubstr(R"("\x5cxe9")")));
  const auto progress = base::value_or_throw(sessions::read_progress(last));
  EXPECT_EQ(progress.config, options.config);
  EXPECT_EQ(progress.epoch, 2);
}

// Each number against what the confusion matrix says of the same test.
TEST(Trainer, MetricsOfEachTestAreShownAndWritten) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("run"));
  options.metrics = base::value_or_throw(
      metrics::parse_names("--metrics", "top1,top2,recall_micro,f1_classes,auroc,confusion"));
  TrainResult result;
  const std::string out = capture(options, &result);
  EXPECT_THAT(out,
              testing::ContainsRegex("Epoch 2 test end .*, Accuracy=[0-9.]+%, Top1=[0-9.]+%, Top2=[0-9.]+%, "
                                     "Recall_micro=[01].[0-9]+, AUROC=[01].[0-9]+\n"));
  std::map<std::string, double> last;
  const auto rows = base::split(base::value_or_throw(base::read_file(folder.path("run/metrics.csv"))), '\n');
  const auto columns = base::split(rows.front(), ','), cells = base::split(rows[rows.size() - 2], ',');
  ASSERT_EQ(cells.size(), columns.size());
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i] != "split" && !cells[i].empty()) last[columns[i]] = std::stod(cells[i]);
  const auto confusion =
      nlohmann::json::parse(base::value_or_throw(base::read_file(folder.path("run/confusion.json"))));
  EXPECT_EQ(confusion["epoch"], 2);
  EXPECT_EQ(confusion["step"], 24);
  EXPECT_FALSE(confusion.contains("classes"));
  int64_t samples = 0, right = 0;
  for (size_t label = 0; label < 4; ++label) {
    int64_t labelled = 0, answered = 0;
    for (size_t other = 0; other < 4; ++other) {
      labelled += confusion["matrix"][label][other].get<int64_t>();
      answered += confusion["matrix"][other][label].get<int64_t>();
    }
    const auto hits = confusion["matrix"][label][label].get<int64_t>();
    const double f1 = 2.0 * static_cast<double>(hits) / static_cast<double>(labelled + answered);
    EXPECT_NEAR(last.at(base::str("f1_classes/", label)), f1, 1e-9) << label;
    samples += labelled;
    right += hits;
  }
  EXPECT_EQ(samples, 50);
  EXPECT_EQ(last.at("accuracy"), 100.0 * static_cast<double>(right) / 50);
  EXPECT_EQ(last.at("top1"), last.at("accuracy"));
  EXPECT_EQ(last.at("accuracy"), result.accuracy);
  EXPECT_GE(last.at("top2"), last.at("top1"));
  EXPECT_NEAR(last.at("recall_micro"), last.at("accuracy") / 100, 1e-9);
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

// The sums against a count by hand, with padding that would be right by chance.
TEST(Evaluate, CountsRealRowsOnly) {
  Options options;
  options.device = "cpu";
  auto session = start(options);
  std::vector<sessions::HostBatch> batches(2);
  for (auto& batch : batches) {
    batch.image = torch::eye(3);  // row i predicts class i
    batch.label = torch::tensor({0, 1, 0}, torch::kLong);
    batch.mask = torch::ones({3}, torch::kBool);
    batch.columns = {batch.image, batch.label};
  }
  batches[1].mask = torch::tensor({false, true, false});
  size_t next = 0;
  auto source = [&]() -> std::vector<sessions::HostBatch> {
    if (next == batches.size()) return {};
    return {batches[next++]};
  };
  const TrainOptions options_of_steps;
  const Steps steps = image_classification(options_of_steps, [](torch::Tensor x) { return x; });
  Evaluation result = evaluate(
      session, steps, session.feed_source(source, {}), 2, /*autocast=*/false, [] { return false; },
      [](int64_t) {});
  EXPECT_EQ(result.samples, 4);
  EXPECT_EQ(result.values["accuracy"], 0.75);
  const double right = -std::log(std::exp(1.0) / (std::exp(1.0) + 2)),
               wrong = -std::log(1 / (std::exp(1.0) + 2));
  EXPECT_NEAR(result.values["loss"], (3 * right + wrong) / 4, 1e-6);
  EXPECT_FALSE(result.stopped);
}

}  // namespace
}  // namespace sluice::train
