// Trainings of tasks that are no classification: steps, optimizers and callbacks of a user's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/session/files/checkpoint.h"
#include "sluice/session/files/tensor_set.h"
#include "sluice/train/testing/fit_training.h"

namespace sluice::train {
namespace {

using testing::HasSubstr;

TEST_P(Fit, ARegressionIsMeasuredOverExactlyItsSet) {
  TrainResult result;
  const std::string out = fit(regression(), &result);
  EXPECT_EQ(result.steps, 18);
  EXPECT_THAT(out, HasSubstr("Samples=50, Loss="));
  EXPECT_THAT(out, HasSubstr(" Mae="));
  EXPECT_THAT(out, HasSubstr("Min Loss: "));
  // The oracle: LibTorch over all 50 rows, which the last, padded batch must not change.
  model_->to(torch::kCPU);
  std::vector<torch::Tensor> x, y;
  for (int i = 0; i < 50; ++i) {
    x.push_back(torch::tensor(input_of(i)));
    y.push_back(torch::tensor({target_of(i)}));
  }
  const torch::Tensor error = (model_->forward(torch::stack(x)) - torch::stack(y)).to(torch::kDouble);
  ASSERT_EQ(result.values.size(), 3U);
  EXPECT_EQ(result.values[0].first, "loss");
  EXPECT_NEAR(result.values[0].second, error.square().mean().item<double>(), 1e-6);
  EXPECT_EQ(result.values[1].first, "mae");
  EXPECT_NEAR(result.values[1].second, error.abs().mean().item<double>(), 1e-6);
  EXPECT_EQ(result.values[2].first, "mse");
  EXPECT_NEAR(result.values[2].second, result.values[0].second, 1e-6);
  EXPECT_TRUE(result.best.has_value());
  const auto tests = rows("test"), trained = rows("train");
  ASSERT_EQ(tests.size(), 3U);
  EXPECT_LT(tests[2]["loss"], tests[0]["loss"]);
  EXPECT_TRUE(tests[2].contains("mse"));
  EXPECT_TRUE(trained[0].contains("mae"));
  EXPECT_TRUE(
      std::any_of(trained.begin(), trained.end(), [](const auto& row) { return row.contains("bias"); }));
}

TEST_P(Fit, TrainsOnTensorsInMemory) {
  std::vector<torch::Tensor> inputs, targets;
  for (int i = 0; i < 50; ++i) {
    inputs.push_back(torch::tensor(input_of(i)));
    targets.push_back(torch::tensor({target_of(i)}));
  }
  const torch::Tensor x = torch::stack(inputs), y = torch::stack(targets);
  testing::internal::CaptureStdout();
  {
    // [tensors]
    TensorSet train({x, y}), test({x, y});
    Trainer trainer(options_, {train.shuffle().batch(8), test.batch(8).pad()});
    // [end]
    trainer.fit(model_, regression());
  }
  testing::internal::GetCapturedStdout();
  model_->to(torch::kCPU);
  const double error = (model_->forward(x) - y).square().mean().item<double>();
  EXPECT_NEAR(rows("test").back()["loss"].get<double>(), error, 1e-6);
  EXPECT_EQ(rows("test").size(), 3U);
  EXPECT_LT(rows("test").back()["loss"], rows("test").front()["loss"]);
}

TEST_P(Fit, GoesOnWithSeveralOptimizersAsIfItHadNotStopped) {
  // Weight and bias have an optimizer each, and the bias's rate a schedule of its own.
  Steps steps = regression();
  std::vector<double> factors;
  steps.configure_optimizers = [&] {
    auto adam = std::make_shared<torch::optim::Adam>(std::vector<torch::Tensor>{model_->weight}, 0.05);
    auto sgd = std::make_shared<torch::optim::SGD>(std::vector<torch::Tensor>{model_->bias},
                                                   torch::optim::SGDOptions(0.1).momentum(0.9));
    return std::vector<OptimizerSetup>{{adam, {}}, {sgd, [&](const RunPlace& place) {
                                                      factors.push_back(place.epoch);
                                                      return 1 / (1 + place.epoch);
                                                    }}};
  };
  const auto start = [&] {
    torch::NoGradGuard no_grad;
    model_->to(torch::kCPU);
    model_->weight.fill_(0.125);
    model_->bias.fill_(-0.25);
  };
  start();
  fit(steps);
  EXPECT_EQ(factors.size(), 18U);
  EXPECT_EQ(factors[6], 1.0);
  const auto whole = base::value_or_throw(sessions::read_checkpoint(folder_.path("run/last")));
  options_.logdir = folder_.path("parts");
  options_.max_steps = 7;
  start();
  fit(steps);
  options_.max_steps = 0;
  options_.resume.from_last = true;
  start();
  fit(steps);
  const auto parts = base::value_or_throw(sessions::read_checkpoint(folder_.path("parts/last")));
  ASSERT_EQ(parts.progress.step, 18);
  for (size_t i = 0; i < whole.model.size(); ++i)
    EXPECT_TRUE(at::equal(whole.model[i].second, parts.model[i].second)) << whole.model[i].first;
  EXPECT_EQ(parts.progress.monitor, "loss");
  std::vector<std::string> names;
  for (const auto& [name, tensor] : parts.state) names.push_back(name);
  EXPECT_THAT(names, testing::IsSupersetOf({"optimizer.weight.exp_avg", "optimizer.bias.momentum_buffer"}));
}

// configure_optimizers may return the same optimizer each time: a sweep before a training changes nothing,
// and the schedule of one training is not the rate with which the next one begins.
TEST_P(Fit, ASweepAndATrainingLeaveTheOptimizerAsItWas) {
  options_.epochs = 1;
  options_.lr_schedule = LrSchedule::kCosine;
  torch::NoGradGuard no_grad;
  const torch::Tensor weight = model_->weight.detach().clone(), bias = model_->bias.detach().clone();
  const auto trained = [&](bool sweeps, bool twice) {
    model_->to(torch::kCPU);
    model_->weight.copy_(weight);
    model_->bias.copy_(bias);
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(std::vector{model_->weight}, std::make_unique<torch::optim::AdamOptions>(0.05));
    groups.emplace_back(std::vector{model_->bias}, std::make_unique<torch::optim::AdamOptions>(0.2));
    const auto adam = std::make_shared<torch::optim::Adam>(groups);
    Steps steps = regression();
    steps.configure_optimizers = [&] { return std::vector<OptimizerSetup>{{adam, {}}}; };
    torch::AutoGradMode grad(true);
    testing::internal::CaptureStdout();
    Trainer trainer(options_, sets());
    if (sweeps) trainer.find_learning_rate(*model_, steps, {.min = 1e-3, .max = 10, .steps = 20});
    trainer.fit(model_, steps);
    EXPECT_EQ(adam->param_groups()[0].options().get_lr(), 0.05);
    EXPECT_EQ(adam->param_groups()[1].options().get_lr(), 0.2);
    const torch::Tensor once = model_->weight.detach().cpu().clone();
    if (twice) trainer.fit(model_, steps);
    testing::internal::GetCapturedStdout();
    if (twice) {
      EXPECT_FALSE(at::equal(model_->weight.cpu(), once));
    }
    return once;
  };
  const torch::Tensor plain = trained(false, false);
  EXPECT_FALSE(at::equal(plain, weight));
  EXPECT_TRUE(at::equal(trained(true, true), plain));
}

// Against the same updates with LibTorch alone: the second one sees what the first has changed, and gradients
// for the other's parameters are let go.
TEST_P(Fit, OptimizersTakeTurnsInAStep) {
  options_.epochs = 1;
  set_->batch(25);
  Steps steps;
  steps.updating_step = [&](Batch& batch, Updates& updates) -> StepOutput {
    const auto loss = [&] { return (model_->forward(batch.columns[0]) - batch.columns[1]).square().mean(); };
    const torch::Tensor first = loss();
    updates.update(1, first);
    const torch::Tensor second = loss();
    updates.update(0, second);
    return {.logs = {{"first", first.detach()}, {"second", second.detach()}}};
  };
  steps.validation_step = regression().validation_step;
  const auto setups = [](torch::nn::Linear& model) {
    return std::vector<OptimizerSetup>{
        {std::make_shared<torch::optim::SGD>(std::vector<torch::Tensor>{model->weight}, 0.1), {}},
        {std::make_shared<torch::optim::SGD>(std::vector<torch::Tensor>{model->bias}, 0.2), {}}};
  };
  steps.configure_optimizers = [&] { return setups(model_); };
  torch::nn::Linear other(3, 1);
  {
    torch::NoGradGuard no_grad;
    other->weight.copy_(model_->weight);
    other->bias.copy_(model_->bias);
  }
  const Sets data = sets();
  std::vector<std::vector<torch::Tensor>> batches;
  Options cpu;
  cpu.device = "cpu";
  {
    auto session = start(cpu);
    for (auto& batch : session.feed(*data.train, {.epoch = 0})) batches.push_back(batch.columns);
  }
  ASSERT_EQ(batches.size(), 2U);
  auto own = setups(other);
  for (const auto& batch : batches)
    for (const size_t turn : {1, 0}) {
      for (auto& setup : own) setup.optimizer->zero_grad();
      (other->forward(batch[0]) - batch[1]).square().mean().backward();
      own[turn].optimizer->step();
    }
  const std::string out = fit(steps);
  EXPECT_THAT(out, HasSubstr(" First="));
  model_->to(torch::kCPU);
  EXPECT_TRUE(torch::allclose(model_->weight, other->weight, 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(model_->bias, other->bias, 1e-5, 1e-6));
}

struct Stateless : Callback {
  std::string name() const override { return "stateless"; }
  std::string state() const override { throw std::runtime_error("nothing to tell"); }
};

struct Counter : Callback {
  std::string name() const override { return "counter"; }
  void begin(Run& run) override { begun += run.place().steps == 18; }
  void after_step(Run& run) override {
    if (run.place().step == fails_at) throw std::runtime_error("no more");
    ++steps;
  }
  void after_test(Run&, const metrics::Values& values) override { tests += values["loss"] >= 0; }
  std::string state() const override { return std::to_string(steps); }
  void load(const std::string& state) override { steps = std::stoi(state); }
  int begun = 0, steps = 0, tests = 0, fails_at = -1;
};

TEST_P(Fit, CallbacksAreCalledAndNamedInErrors) {
  const auto run = [&](const std::shared_ptr<Counter>& counter) {
    testing::internal::CaptureStdout();
    const std::string error = message([&] {
      Trainer trainer(options_, sets());
      trainer.add(counter);
      trainer.fit(model_, regression());
    });
    testing::internal::GetCapturedStdout();
    return error;
  };
  auto failing = std::make_shared<Counter>();
  failing->fails_at = 9;
  EXPECT_EQ(run(failing), "callback 'counter', after_step: no more");
  const auto saved = base::value_or_throw(sessions::read_checkpoint(folder_.path("run/last")));
  EXPECT_EQ(saved.progress.step, 6);
  EXPECT_EQ(saved.progress.callbacks.at("counter"), "6");
  options_.resume.from_last = true;
  auto counter = std::make_shared<Counter>();
  EXPECT_EQ(run(counter), "");
  EXPECT_EQ(counter->begun, 1);
  EXPECT_EQ(counter->steps, 18);
  EXPECT_EQ(counter->tests, 2);
  testing::internal::CaptureStdout();
  options_.resume = {};
  EXPECT_EQ(message([&] {
              Trainer trainer(options_, sets());
              trainer.add(std::make_shared<Stateless>());
              trainer.fit(model_, regression());
            }),
            "callback 'stateless', state: nothing to tell");
  testing::internal::GetCapturedStdout();
}

TEST_P(Fit, ErrorsOfAStepNameIt) {
  const auto with = [&](const std::function<void(StepOutput&, int)>& change) {
    Steps steps = regression();
    steps.training_step = [train = steps.training_step, change, step = 0](Batch& batch) mutable {
      StepOutput output = train(batch);
      change(output, ++step);
      return output;
    };
    return error_of(steps);
  };
  EXPECT_EQ(
      with([](StepOutput& output, int) { output.logs[0].first = "loss"; }),
      "step 1: it gives two values with the name 'loss': 'loss' is the name of StepOutput::loss, so call "
      "the one in logs something else");
  EXPECT_EQ(with([](StepOutput& output, int) { output.logs.push_back(output.logs[0]); }),
            "step 1: it gives two values with the name 'mae': call one of them something else");
  EXPECT_EQ(with([](StepOutput& output, int step) {
              if (step == 3) output.logs[0].first = "error";
            }),
            "step 3: the step gives the values loss, error, the one before it gave loss, mae: the names must "
            "be the same in every step");
  EXPECT_THAT(with([](StepOutput& output, int step) {
                if (step == 2) output.loss = output.loss.detach();
              }),
              HasSubstr("step 2: the loss has no gradient, because it depends on no parameter"));
}

TEST_P(Fit, RefusesWhatContradictsItself) {
  Steps steps;
  EXPECT_THAT(error_of(steps), HasSubstr("need a training_step or an updating_step"));
  steps = regression();
  steps.validation_step = nullptr;
  EXPECT_THAT(error_of(steps), HasSubstr("the steps have no validation_step"));
  steps = regression();
  steps.training_step = [](Batch&) { return StepOutput(); };
  EXPECT_THAT(error_of(steps), HasSubstr("training_step returned no loss"));
  steps = regression();
  steps.training_step = [&](Batch& batch) {
    return StepOutput{.loss = model_->forward(batch.columns[0]).sum(0).expand({3})};
  };
  EXPECT_THAT(error_of(steps), HasSubstr("expected one element, or one for each of the batch's 8 rows"));
  steps = regression();
  steps.monitor.name = "mea";
  EXPECT_THAT(error_of(steps), HasSubstr("mae"));
  steps = regression();
  steps.configure_optimizers = [] {
    const torch::Tensor stranger = torch::zeros({2}, torch::requires_grad());
    return std::vector<OptimizerSetup>{
        {std::make_shared<torch::optim::SGD>(std::vector<torch::Tensor>{stranger}, 0.1), {}}};
  };
  EXPECT_THAT(error_of(steps), HasSubstr("that does not belong to the module"));
  steps.configure_optimizers = [&] {
    return std::vector<OptimizerSetup>{{std::make_shared<torch::optim::LBFGS>(model_->parameters()), {}}};
  };
  EXPECT_THAT(error_of(steps), HasSubstr("optimizer 0 is LBFGS"));
  steps = regression();
  const auto validation = steps.validation_step;
  steps.validation_step = [validation](Batch& batch) {
    StepOutput output = validation(batch);
    output.logs[0].first = "learning_rate";
    return output;
  };
  EXPECT_THAT(error_of(steps), HasSubstr("the name of a column that the table has anyway"));
  auto bytes = data::WebDataset(folder_.path("a.tar")).to_tuple("__key__").batch(8);  // text alone
  EXPECT_THAT(message([&] { Trainer(options_, bytes).fit(model_, regression()); }),
              HasSubstr("no field that is a number, an array or an image"));
  auto unpadded = *set_;
  EXPECT_THROW(Trainer(options_, Sets(*set_, unpadded.drop_last())), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, Fit, testing::Values(DeviceKind::kCpu, DeviceKind::kXla),
                         [](const auto& info) { return info.param == DeviceKind::kXla ? "xla" : "cpu"; });

}  // namespace
}  // namespace sluice::train
