// Trainings that stop and continue, and the checkpoints that they leave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "sluice/train/testing/run_training.h"

namespace sluice::train {
namespace {

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

}  // namespace
}  // namespace sluice::train
