// The callbacks that come with the trainer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "sluice/base/file.h"
#include "sluice/session/checkpoint.h"
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

class Callbacks : public testing::TestWithParam<DeviceKind> {
 protected:
  Callbacks() : folder_(base::value_or_throw(base::TemporaryDirectory::create())) {
    if (is_initialized()) shutdown();
    options_ = GetParam() == DeviceKind::kXla ? small_training_on_xla(folder_.path("run"))
                                              : small_training(folder_.path("run"));
    options_.model = "";
    options_.train_size = 80;  // 5 steps
    options_.epochs = 3;
  }
  ~Callbacks() override {
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

TEST_P(Callbacks, AMovingAverageOfTheWeightsIsTestedAndKept) {
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

TEST_P(Callbacks, AWarmUpMakesTheFirstAveragesShort) {
  options_.ema = 0.99;
  options_.ema_warmup = true;
  auto recorder = std::make_shared<Recorder>();
  fit({recorder});
  expect_near(host_weights(*net_), moving_average(recorder->steps, [](int64_t n) {
                return std::min(0.99, (1.0 + static_cast<double>(n)) / (10.0 + static_cast<double>(n)));
              }));
}

TEST_P(Callbacks, TheMeanOverEpochsIsThatOfTheirLastSteps) {
  options_.swa_start = 2;
  auto recorder = std::make_shared<Recorder>();
  fit({recorder});
  Weights mean = recorder->steps[9];
  for (auto& [name, value] : mean) value = (value + recorder->steps[14].at(name)) / 2;
  expect_near(host_weights(*net_), mean);
}

TEST_P(Callbacks, TheMeanOverEveryOtherStepFromOneOn) {
  auto recorder = std::make_shared<Recorder>();
  fit({recorder, std::make_shared<WeightAverage>(WeightAverageOptions{.every_steps = 3, .from_step = 6})});
  Weights mean = recorder->steps[8];  // steps 9, 12 and 15
  for (auto& [name, value] : mean)
    value = (value + recorder->steps[11].at(name) + recorder->steps[14].at(name)) / 3;
  expect_near(host_weights(*net_), mean);
}

TEST_P(Callbacks, AveragesGoOnBitForBit) {
  for (const bool swa : {false, true}) {
    options_.ema = swa ? 0 : 0.9;
    options_.swa_start = swa ? 1 : 0;
    const std::string whole = swa ? "whole swa" : "whole ema", parts = swa ? "parts swa" : "parts ema";
    options_.logdir = folder_.path(whole);
    options_.resume = "";
    options_.max_steps = 0;
    fit({});
    options_.logdir = folder_.path(parts);
    options_.max_steps = 7;
    fit({});
    options_.max_steps = 0;
    options_.resume = "auto";
    fit({});
    expect_same(whole + "/last", parts + "/last");
    EXPECT_EQ(checkpoint(parts + "/last").progress.callbacks.at("weight average"), swa ? "3" : "15");
  }
}

TEST_P(Callbacks, AveragesComeAndGoBetweenTheRunsParts) {
  options_.epochs = 1;
  fit({});
  options_.resume = "auto";
  options_.epochs = 2;
  options_.ema = 0.5;
  fit({});
  EXPECT_EQ(checkpoint("run/last").progress.callbacks.at("weight average"), "5");
  options_.epochs = 3;
  options_.ema = 0;
  testing::internal::CaptureStderr();
  fit({});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("tensors of callbacks that this run is without"));
}

TEST_P(Callbacks, RefusesAveragesThatMakeNoSense) {
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

INSTANTIATE_TEST_SUITE_P(Devices, Callbacks, testing::Values(DeviceKind::kCpu, DeviceKind::kXla),
                         [](const auto& info) { return info.param == DeviceKind::kXla ? "xla" : "cpu"; });

}  // namespace
}  // namespace sluice::train
