// The callbacks that come with the trainer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/train/testing/small_training.h"
#include "sluice/train/trainer.h"

namespace sluice::train {
namespace {

using testing::HasSubstr;
using Weights = std::map<std::string, torch::Tensor>;

Weights as_map(const NamedValues& tensors) { return {tensors.begin(), tensors.end()}; }

// Of parameters, in f64, to be added up.
Weights host_weights(const torch::nn::Module& module) {
  Weights result;
  for (const auto& item : module.named_parameters())
    result[item.key()] = item.value().detach().cpu().to(torch::kDouble).clone();
  return result;
}

// Keeps the weights as each step has left them.
struct Recorder : Callback {
  std::string name() const override { return "recorder"; }
  void after_step(Run& run) override {
    steps.push_back(host_weights(run.module()));
    programs.push_back(is_initialized() ? counters().programs : 0);
  }
  void end(Run&) override { programs.push_back(is_initialized() ? counters().programs : 0); }
  std::vector<Weights> steps;
  std::vector<int64_t> programs;
};

// The steps after which the weights were read.
struct Readings : Callback {
  std::string name() const override { return "readings"; }
  void after_reading(Run& run) override { saved.push_back(run.place().step); }
  std::vector<int64_t> saved;
};

struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("fc", fc);
  }
  torch::Tensor forward(torch::Tensor x) { return fc(torch::relu(norm(conv(x))).flatten(1)); }
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(1, 2, 3)};
  torch::nn::BatchNorm2d norm{2};
  torch::nn::Linear fc{72, 4};
};
TORCH_MODULE(Net);

class OwnCallbacks : public testing::TestWithParam<DeviceKind> {
 protected:
  OwnCallbacks() : folder_(base::value_or_throw(base::TemporaryDirectory::create())) {
    if (is_initialized()) shutdown();
    options_ = GetParam() == DeviceKind::kXla ? small_training_on_xla(folder_.path("run"))
                                              : small_training(folder_.path("run"));
    options_.model = "";
    options_.train_size = 80;  // 5 steps
    options_.epochs = 3;
  }
  ~OwnCallbacks() override {
    if (is_initialized()) shutdown();
  }

  // Trains a new net with the callbacks; gives what it printed.
  std::string fit(const std::vector<std::shared_ptr<Callback>>& callbacks, TrainResult* result = nullptr) {
    torch::manual_seed(5);
    net_ = Net();
    testing::internal::CaptureStdout();
    try {
      Trainer trainer(options_);
      for (const auto& callback : callbacks) trainer.add(callback);
      const TrainResult found = trainer.fit(net_);
      if (result != nullptr) *result = found;
    } catch (...) {
      testing::internal::GetCapturedStdout();
      throw;
    }
    return testing::internal::GetCapturedStdout();
  }
  std::string error_of(const std::vector<std::shared_ptr<Callback>>& callbacks) {
    try {
      fit(callbacks);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  sessions::Checkpoint checkpoint(const std::string& name) const {
    return base::value_or_throw(sessions::read_checkpoint(folder_.path(name)));
  }
  static void expect_near(const Weights& found, const Weights& expected, double tolerance = 2e-6) {
    for (const auto& [name, tensor] : expected) {
      ASSERT_EQ(found.count(name), 1U) << name;
      EXPECT_LE((found.at(name).to(torch::kDouble) - tensor).abs().max().item<double>(), tolerance) << name;
    }
  }
  void expect_same(const std::string& a, const std::string& b) const {
    const auto first = checkpoint(a), second = checkpoint(b);
    EXPECT_EQ(first.progress.step, second.progress.step);
    EXPECT_EQ(first.progress.callbacks, second.progress.callbacks);
    for (const auto part : {&sessions::Checkpoint::model, &sessions::Checkpoint::state}) {
      const Weights one = as_map(first.*part), other = as_map(second.*part);
      ASSERT_EQ(one.size(), other.size());
      for (const auto& [name, tensor] : one) EXPECT_TRUE(at::equal(tensor, other.at(name))) << name;
    }
  }

  base::TemporaryDirectory folder_;
  TrainOptions options_;
  Net net_;
};

// The definition, from the weights of each step: a ← d a + (1 - d) w, and a = w at first.
Weights moving_average(const std::vector<Weights>& steps, const std::function<double(int64_t)>& decay) {
  Weights average = steps.front();
  for (size_t i = 1; i < steps.size(); ++i)
    for (auto& [name, value] : average) {
      const double d = decay(static_cast<int64_t>(i));
      value = d * value + (1 - d) * steps[i].at(name);
    }
  return average;
}

TEST_P(OwnCallbacks, AMovingAverageOfTheWeightsIsTestedAndKept) {
  options_.ema = 0.9;
  auto recorder = std::make_shared<Recorder>();
  TrainResult result;
  fit({recorder}, &result);
  ASSERT_EQ(recorder->steps.size(), 15U);
  const Weights expected = moving_average(recorder->steps, [](int64_t) { return 0.9; });
  const auto last = checkpoint("run/last");
  expect_near(as_map(last.model), expected);
  expect_near(host_weights(*net_), expected);
  Weights trained;
  for (const auto& [name, tensor] : last.state)
    if (base::starts_with(name, "callback.weight average.")) trained[name.substr(24)] = tensor;
  expect_near(trained, recorder->steps.back(), 0);
  // What the test has measured are the averages: the module has them now.
  options_.ema = 0;
  options_.epochs = 0;
  options_.logdir = folder_.path("other");
  testing::internal::CaptureStdout();
  Trainer trainer(options_);
  Steps steps;
  steps.validation_step = [this](Batch& batch) -> StepOutput {
    return {.loss = torch::nn::functional::cross_entropy(
                net_->forward(batch.image), batch.label,
                torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone))};
  };
  const double loss = trainer.validate(*net_, steps)["loss"];
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(result.values.front().first, "loss");
  EXPECT_NEAR(loss, result.values.front().second, 1e-6);
  // The update of the averages is part of the step's program: a test is all that comes later.
  EXPECT_LE(recorder->programs.back() - recorder->programs[1], 1);
}

TEST_P(OwnCallbacks, AWarmUpMakesTheFirstAveragesShort) {
  options_.ema = 0.99;
  options_.ema_warmup = true;
  auto recorder = std::make_shared<Recorder>();
  fit({recorder});
  expect_near(host_weights(*net_), moving_average(recorder->steps, [](int64_t n) {
                return std::min(0.99, (1.0 + static_cast<double>(n)) / (10.0 + static_cast<double>(n)));
              }));
}

TEST_P(OwnCallbacks, TheMeanOverEpochsIsThatOfTheirLastSteps) {
  options_.swa_start = 2;
  auto recorder = std::make_shared<Recorder>();
  fit({recorder});
  Weights mean = recorder->steps[9];
  for (auto& [name, value] : mean) value = (value + recorder->steps[14].at(name)) / 2;
  expect_near(host_weights(*net_), mean);
}

TEST_P(OwnCallbacks, TheMeanOverEveryOtherStepFromOneOn) {
  auto recorder = std::make_shared<Recorder>();
  fit({recorder, std::make_shared<WeightAverage>(WeightAverageOptions{.every_steps = 3, .from_step = 6})});
  Weights mean = recorder->steps[8];  // steps 9, 12 and 15
  for (auto& [name, value] : mean)
    value = (value + recorder->steps[11].at(name) + recorder->steps[14].at(name)) / 3;
  expect_near(host_weights(*net_), mean);
}

TEST_P(OwnCallbacks, AveragesGoOnBitForBit) {
  for (const bool swa : {false, true}) {
    options_.ema = swa ? 0 : 0.9;
    options_.swa_start = swa ? 1 : 0;
    const std::string whole = swa ? "whole swa" : "whole ema", parts = swa ? "parts swa" : "parts ema";
    options_.logdir = folder_.path(whole);
    options_.resume = {};
    options_.max_steps = 0;
    fit({});
    options_.logdir = folder_.path(parts);
    options_.max_steps = 7;
    fit({});
    options_.max_steps = 0;
    options_.resume.from_last = true;
    fit({});
    expect_same(whole + "/last", parts + "/last");
    EXPECT_EQ(checkpoint(parts + "/last").progress.callbacks.at("weight average"), swa ? "3" : "15");
  }
}

TEST_P(OwnCallbacks, AveragesComeAndGoBetweenTheRunsParts) {
  options_.epochs = 1;
  fit({});
  options_.resume.from_last = true;
  options_.epochs = 2;
  options_.ema = 0.5;
  fit({});
  EXPECT_EQ(checkpoint("run/last").progress.callbacks.at("weight average"), "5");
  options_.epochs = 3;
  options_.ema = 0;
  testing::internal::CaptureStderr();
  fit({});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("tensors of callbacks that this run does not have"));
}

TEST_P(OwnCallbacks, RefusesAveragesThatMakeNoSense) {
  EXPECT_THROW(WeightAverage({.decay = 1}), Error);
  EXPECT_THROW(WeightAverage({.warm_up = true}), Error);
  EXPECT_THROW(WeightAverage({.every_steps = -1}), Error);
  options_.ema = 1.5;
  EXPECT_THAT(error_of({}), HasSubstr("--ema takes a decay of 0 or more and below 1"));
  options_.ema = 0.9;
  options_.swa_start = 1;
  EXPECT_THAT(error_of({}), HasSubstr("--ema and --swa-start both say"));
  options_.ema = 0;
  options_.swa_start = 9;
  EXPECT_THAT(error_of({}), HasSubstr("the run ends after epoch 3"));
}

TEST_P(OwnCallbacks, FrozenParametersStayAsTheyAre) {
  options_.freeze = {"conv.*", "norm"};
  options_.optimizer = OptimizerKind::kAdam;
  options_.lr = 1e-2;
  auto recorder = std::make_shared<Recorder>();
  fit({recorder});
  torch::manual_seed(5);
  const Weights start = host_weights(*Net());
  for (const auto& [name, value] : recorder->steps.back())
    EXPECT_EQ(at::equal(value, start.at(name)), !base::starts_with(name, "fc.")) << name;
  // No state of theirs, and they are the user's again.
  for (const auto& [name, value] : checkpoint("run/last").state)
    EXPECT_FALSE(base::starts_with(name, "optimizer.conv.")) << name;
  EXPECT_TRUE(net_->conv->weight.requires_grad());
}

TEST_P(OwnCallbacks, FrozenParametersAreTrainedFromAnEpochOn) {
  options_.freeze = {"conv"};
  options_.unfreeze_epoch = 3;
  options_.epochs = 4;
  options_.optimizer = OptimizerKind::kAdam;
  options_.lr = 1e-2;
  auto recorder = std::make_shared<Recorder>();
  fit({recorder});
  ASSERT_EQ(recorder->steps.size(), 20U);
  const auto weight = [&](size_t step) { return recorder->steps[step].at("conv.weight"); };
  EXPECT_TRUE(at::equal(weight(0), weight(9)));
  EXPECT_FALSE(at::equal(weight(9), weight(10)));
  // One new program, in the first step of epoch 3.
  const auto& programs = recorder->programs;
  if (GetParam() == DeviceKind::kXla) {
    EXPECT_EQ(programs[10] - programs[9], 1);
  }
  EXPECT_EQ(programs.back(), programs[10]);
  // The same in two parts, of which the second begins in epoch 3.
  options_.logdir = folder_.path("parts");
  options_.max_steps = 12;
  fit({});
  options_.max_steps = 0;
  options_.resume.from_last = true;
  fit({});
  expect_same("run/last", "parts/last");
}

TEST_P(OwnCallbacks, RefusesToFreezeWhatIsNotThere) {
  options_.freeze = {"fc", "nrom.*"};
  EXPECT_THAT(error_of({}),
              HasSubstr("to freeze 'nrom.*': no parameter has such a name; the nearest is norm; "
                        "the model is made of conv, fc, norm"));
  options_.freeze = {"*"};
  EXPECT_THAT(error_of({}), HasSubstr("leaves no parameter that would be trained"));
  options_.freeze = {"fc"};
  options_.unfreeze_epoch = 1;
  EXPECT_THAT(error_of({}), HasSubstr("--unfreeze-epoch 1 is the first one"));
  EXPECT_THROW(Freeze({}), Error);
}

TEST_P(OwnCallbacks, SavesAfterSoManyMinutes) {
  options_.epochs = 1;
  options_.save_minutes = 1e-9;  // at each step
  auto steps = std::make_shared<Readings>();
  fit({steps});
  EXPECT_EQ(steps->saved, (std::vector<int64_t>{1, 2, 3, 4, 5, 5}));  // the test, and the epoch's end
  EXPECT_EQ(checkpoint("run/last").progress.step, 5);
  options_.save_minutes = 60;
  steps->saved.clear();
  fit({steps});
  EXPECT_EQ(steps->saved, (std::vector<int64_t>{5, 5}));
}

TEST_P(OwnCallbacks, ASweepOfLearningRatesPutsTheWeightsBack) {
  options_.optimizer = OptimizerKind::kSgd;
  options_.accumulate = 2;
  torch::manual_seed(5);
  net_ = Net();
  const Weights before = host_weights(*net_);
  const torch::Tensor variance = net_->norm->running_var.clone();
  const torch::Tensor random = at::detail::getDefaultCPUGenerator().get_state();
  testing::internal::CaptureStdout();
  Trainer trainer(options_);
  // [sweep]
  const LearningRates found = trainer.find_learning_rate(net_.ptr(), {.min = 1e-5, .max = 10, .steps = 40});
  // [end]
  const std::string out = testing::internal::GetCapturedStdout();
  const Weights after = host_weights(*net_);
  for (const auto& [name, value] : before) EXPECT_TRUE(at::equal(value, after.at(name))) << name;
  EXPECT_TRUE(at::equal(variance, net_->norm->running_var.cpu()));
  EXPECT_TRUE(at::equal(random, at::detail::getDefaultCPUGenerator().get_state()));
  ASSERT_GT(found.rates.size(), 20U);
  EXPECT_NEAR(found.rates[0], 1e-5, 1e-12);
  EXPECT_NEAR(found.rates[13], 1e-5 * std::pow(1e6, 13.0 / 39), 1e-10);
  // The mean of all losses so far, of which the older count less.
  double sum = 0, weights = 0;
  for (size_t i = 0; i < 5; ++i) {
    sum += std::pow(0.98, 4 - static_cast<double>(i)) * found.losses[i];
    weights += std::pow(0.98, 4 - static_cast<double>(i));
  }
  EXPECT_NEAR(found.smoothed[4], sum / weights, 1e-9);
  ASSERT_TRUE(found.suggestion.has_value());
  EXPECT_GT(*found.suggestion, 1e-5);
  EXPECT_LT(*found.suggestion, 10);
  EXPECT_THAT(out, HasSubstr("the loss falls fastest at "));
  const std::string table = base::value_or_throw(base::read_file(folder_.path("run/learning_rates.csv")));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), static_cast<long>(found.losses.size()) + 1);
  // A training is as it would have been without the sweep.
  testing::internal::CaptureStdout();
  trainer.fit(net_);
  testing::internal::GetCapturedStdout();
  options_.logdir = folder_.path("other");
  fit({});
  expect_same("run/last", "other/last");
  EXPECT_THROW(trainer.find_learning_rate(net_.ptr(), {.min = 1, .max = 0.1}), Error);
}

// Against LibTorch's own gradient, as other trainers use it.
TEST(LearningRateFinder, SuggestsTheSteepestFall) {
  torch::manual_seed(3);
  for (int trial = 0; trial < 20; ++trial) {
    const torch::Tensor losses = torch::rand({30}, torch::kDouble).cumsum(0).neg().add(torch::rand({30}));
    const std::vector<double> values(losses.data_ptr<double>(), losses.data_ptr<double>() + 30);
    const int64_t expected = torch::gradient(losses.slice(0, 10, 29)).front().argmin().item<int64_t>() + 10;
    EXPECT_EQ(steepest_fall(values), static_cast<size_t>(expected));
  }
  EXPECT_EQ(steepest_fall(std::vector<double>(12, 1.0)), std::nullopt);
  std::vector<double> diverged(20, 1.0);
  diverged[12] = 0.5;
  diverged[18] = INFINITY;
  EXPECT_EQ(steepest_fall(diverged), 11U);
}

INSTANTIATE_TEST_SUITE_P(Devices, OwnCallbacks, testing::Values(DeviceKind::kCpu, DeviceKind::kXla),
                         [](const auto& info) { return info.param == DeviceKind::kXla ? "xla" : "cpu"; });

}  // namespace
}  // namespace sluice::train
