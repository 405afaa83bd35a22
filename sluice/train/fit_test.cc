// Trainings of tasks that are no classification: steps, optimizers, tests and predictions of a user's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"
#include "sluice/data/decode/npy.h"
#include "sluice/data/shards/tar_writer.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/session/files/tensor_set.h"
#include "sluice/train/run/test_clock.h"
#include "sluice/train/testing/small_training.h"
#include "sluice/train/trainer.h"

namespace sluice::train {
namespace {

using testing::HasSubstr;

// An npy file of one row of f32.
std::string npy(const std::vector<float>& row) {
  return data::npy_file("<f4", {static_cast<int64_t>(row.size())},
                        {reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float)});
}

std::vector<float> input_of(int i) {
  return {static_cast<float>(i % 7) / 7, static_cast<float>(i % 5) / 5, static_cast<float>(i % 3) / 3};
}
float target_of(int i) {
  const auto x = input_of(i);
  return 2 * x[0] - x[1] + 0.5F * x[2] + 0.25F;
}

// 50 samples: three numbers, and one that is linear in them.
data::WebDataset numbers(const std::string& path) {
  std::string bytes;
  for (int i = 0; i < 50; ++i) {
    bytes += data::tar_member(base::str("s", i, ".x.npy"), npy(input_of(i)));
    bytes += data::tar_member(base::str("s", i, ".y.npy"), npy({target_of(i)}));
  }
  base::value_or_throw(base::write_file_atomically(path, bytes + data::tar_end(bytes.size())));
  return data::WebDataset(path).to_tuple("x.npy", "y.npy");
}

class Fit : public testing::TestWithParam<DeviceKind> {
 protected:
  Fit() : folder_(base::value_or_throw(base::TemporaryDirectory::create())) {
    if (is_initialized()) shutdown();
    torch::manual_seed(4);
    options_ = GetParam() == DeviceKind::kXla ? small_training_on_xla(folder_.path("run"))
                                              : small_training(folder_.path("run"));
    options_.model = "";
    options_.classes = 0;
    options_.fake_data = false;
    options_.epochs = 3;
    options_.log_steps = 2;
    options_.momentum = 0;
    options_.weight_decay = 0;
    set_ = std::make_unique<data::WebDataset>(numbers(folder_.path("a.tar")));
    set_->batch(8);
  }
  ~Fit() override {
    if (is_initialized()) shutdown();
  }

  Sets sets() const {
    auto train = *set_, test = *set_;
    return {train.shuffle(50).drop_last(), test.pad()};
  }
  // Squared errors, one for each row, and their mean absolute one.
  Steps regression() const {
    Steps steps;
    steps.training_step = [model = model_.ptr()](Batch& batch) -> StepOutput {
      const torch::Tensor error = model->forward(batch.columns[0]) - batch.columns[1];
      return {.loss = error.square().squeeze(1),
              .logs = {{"mae", error.detach().abs().mean()}},
              .epoch_logs = {{"bias", error.detach().squeeze(1)}}};
    };
    steps.validation_step = [model = model_.ptr()](Batch& batch) -> StepOutput {
      const torch::Tensor output = model->forward(batch.columns[0]), target = batch.columns[1];
      return {.loss = (output - target).square().squeeze(1),
              .logs = {{"mae", (output - target).abs()}},
              .output = output,
              .target = target};
    };
    steps.metrics = {metrics::MeanSquaredError()};
    return steps;
  }
  std::string fit(const Steps& steps, TrainResult* result = nullptr) {
    testing::internal::CaptureStdout();
    try {
      Trainer trainer(options_, sets());
      const TrainResult found = trainer.fit(model_, steps);
      if (result != nullptr) *result = found;
    } catch (...) {
      testing::internal::GetCapturedStdout();
      throw;
    }
    return testing::internal::GetCapturedStdout();
  }
  static std::string message(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  std::string error_of(const Steps& steps) {
    return message([&] { fit(steps); });
  }
  std::vector<nlohmann::json> rows(const std::string& split) const {
    std::ifstream in(folder_.path("run/metrics.jsonl"));
    std::vector<nlohmann::json> found;
    for (std::string line; std::getline(in, line);)
      if (auto row = nlohmann::json::parse(line); row["split"] == split) found.push_back(row);
    return found;
  }

  base::TemporaryDirectory folder_;
  TrainOptions options_;
  std::unique_ptr<data::WebDataset> set_;
  torch::nn::Linear model_{torch::nn::LinearOptions(3, 1)};
};

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

TEST_P(Fit, TestsOnSeveralSets) {
  Steps steps = regression();
  const auto run = [&](const std::string& monitor, const std::string& name, TrainResult* result) {
    steps.monitor.name = monitor;
    testing::internal::CaptureStdout();
    const std::string error = message([&] {
      auto other = *set_;
      // [sets]
      Sets all = sets();
      all.also(name, other.where("__key__ like s1*").pad());
      // [end]
      *result = Trainer(options_, all).fit(model_, steps);
    });
    return error + testing::internal::GetCapturedStdout();
  };
  TrainResult result;
  const std::string out = run("ones/loss", "ones", &result);
  EXPECT_THAT(out, testing::ContainsRegex("Epoch 3 test ones end [0-9:]+, Samples=11, Loss="));
  std::vector<std::string> names;
  for (const auto& [name, value] : result.values) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "mae", "mse", "ones/loss", "ones/mae", "ones/mse"}));
  // The oracle: LibTorch over the eleven rows, s1 and s10 to s19.
  model_->to(torch::kCPU);
  double sum = 0;
  for (const int i : {1, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}) {
    const torch::Tensor error = model_->forward(torch::tensor(input_of(i))) - target_of(i);
    sum += error.square().sum().item<double>();
  }
  EXPECT_NEAR(result.values[3].second, sum / 11, 1e-6);
  const auto tests = rows("test");
  ASSERT_EQ(tests.size(), 3U);
  EXPECT_EQ(tests[2]["ones/loss"].get<double>(), result.values[3].second);
  double least = 1e9;
  for (const auto& row : tests) least = std::min(least, row["ones/loss"].get<double>());
  EXPECT_EQ(result.best, least);
  EXPECT_THAT(run("ones/los", "ones", &result), HasSubstr("ones/loss"));
  EXPECT_THAT(run("loss", "a/b", &result), HasSubstr("expected a name of letters, digits, _ and -"));
}

TEST_P(Fit, TestsWithinEpochsChangeNothingElse) {
  std::vector<sessions::NamedTensors> weights;
  for (const int64_t every : {0, 4}) {
    torch::manual_seed(4);
    model_ = torch::nn::Linear(torch::nn::LinearOptions(3, 1));
    options_.test_every_steps = every;
    options_.epochs = 2;  // of six steps
    fit(regression());
    std::vector<int64_t> tested;
    for (const auto& row : rows("test")) tested.push_back(row["step"].get<int64_t>());
    const std::vector<int64_t> expected =
        every == 0 ? std::vector<int64_t>{6, 12} : std::vector<int64_t>{4, 6, 8, 12};
    EXPECT_EQ(tested, expected);
    weights.push_back(base::value_or_throw(sessions::read_checkpoint(folder_.path("run/last"))).model);
    std::filesystem::remove_all(folder_.path("run"));
    if (is_initialized()) shutdown();
  }
  for (size_t i = 0; i < weights[0].size(); ++i)
    EXPECT_TRUE(torch::equal(weights[0][i].second, weights[1][i].second)) << weights[0][i].first;
}

// No case depends on how fast the machine is: each update takes longer than 1e-12 minutes, and no run an
// hour.
TEST_P(Fit, TestsAfterMinutes) {
  const auto tested_steps = [&](double minutes, int64_t epochs) {
    options_.test_every_minutes = minutes;
    options_.epochs = epochs;  // of six steps
    model_ = torch::nn::Linear(torch::nn::LinearOptions(3, 1));
    fit(regression());
    std::vector<int64_t> steps;
    for (const auto& row : rows("test")) steps.push_back(row["step"].get<int64_t>());
    if (is_initialized()) shutdown();
    return steps;
  };
  EXPECT_EQ(tested_steps(1e-12, 1), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tested_steps(60, 1), (std::vector<int64_t>{6}));
  const auto last = base::value_or_throw(sessions::read_progress(folder_.path("run/last")));
  EXPECT_EQ(last.callbacks.count("test clock"), 1U);
  EXPECT_EQ(tested_steps(0, 1), (std::vector<int64_t>{6}));
  // A resumed run continues the count, and tests at once if its minutes were over.
  options_.resume.from_last = true;
  EXPECT_EQ(tested_steps(1e-12, 2), (std::vector<int64_t>{6, 7, 8, 9, 10, 11, 12}));
  options_.test_every_minutes = -1;
  EXPECT_THROW(Trainer(options_, sets()), Error);
}

TEST(TestClock, ContinuesFromItsState) {
  TestClock clock;
  EXPECT_LT(clock.seconds(), 3600);
  clock.load("3600");
  EXPECT_GE(clock.seconds(), 3600);
  TestClock resumed;
  resumed.load(clock.state());
  EXPECT_GE(resumed.seconds(), 3600);
  EXPECT_THROW(resumed.load("soon"), Error);
  EXPECT_THROW(resumed.load("-1"), Error);
}

TEST_P(Fit, ValidatesAndPredicts) {
  Steps steps = regression();
  steps.predict_step = [&](Batch& batch) {
    const torch::Tensor output = model_->forward(batch.columns[0]);
    return std::vector<std::pair<std::string, torch::Tensor>>{
        {"y", output.squeeze(1)}, {"x", batch.columns[0]}, {"large", output.squeeze(1).gt(0.5)}};
  };
  torch::nn::Linear host(3, 1);
  {
    torch::NoGradGuard no_grad;
    host->weight.copy_(model_->weight);
    host->bias.copy_(model_->bias);
  }
  testing::internal::CaptureStdout();
  Trainer trainer(options_, sets());
  model_->train();
  const metrics::Values values = trainer.validate(*model_, steps);
  EXPECT_EQ(values.value("loss").count, 50);
  EXPECT_TRUE(model_->is_training());
  auto set = *set_;
  const std::string path = folder_.path("out.jsonl");
  EXPECT_EQ(trainer.predict(*model_, steps, set.pad(), path), 50);
  testing::internal::GetCapturedStdout();
  std::ifstream in(path);
  int i = 0;
  for (std::string line; std::getline(in, line); ++i) {
    const auto row = nlohmann::json::parse(line);
    EXPECT_EQ(row["key"], base::str("s", i));
    const double y = host->forward(torch::tensor(input_of(i)).unsqueeze(0)).item<double>();
    EXPECT_NEAR(row["y"].get<double>(), y, 1e-6);
    EXPECT_EQ(row["large"], row["y"].get<double>() > 0.5);
    EXPECT_EQ(row["x"].size(), 3U);
    EXPECT_FLOAT_EQ(row["x"][0].get<float>(), input_of(i)[0]);
  }
  EXPECT_EQ(i, 50);
  steps.predict_step = [&](Batch& batch) {
    return std::vector<std::pair<std::string, torch::Tensor>>{{"y", batch.columns[0].sum()}};
  };
  EXPECT_THROW(trainer.predict(*model_, steps, set, folder_.path("none.jsonl")), Error);
  EXPECT_FALSE(base::path_exists(folder_.path("none.jsonl")));
}

// The same values as lines, as one shard and as several, which their index files and readers find complete.
TEST_P(Fit, PredictionsAreShards) {
  Steps steps = regression();
  steps.predict_step = [&](Batch& batch) {
    const torch::Tensor output = model_->forward(batch.columns[0]);
    return NamedValues{{"y", output.squeeze(1)}, {"Pair", torch::cat({output, -output}, 1)}};
  };
  testing::internal::CaptureStdout();
  Trainer trainer(options_, sets());
  auto set = *set_;
  set.pad();
  base::value_or_throw(base::make_directories(folder_.path("out")));
  for (const char* const name : {"lines.jsonl", "one.tar", "many-%03d.tar", "dotted.many-%d.tar"})
    EXPECT_EQ(trainer.predict(*model_, steps, set, folder_.path(base::str("out/", name)), 20), 50);
  const auto error_of = [&](const std::string& path) -> std::string {
    try {
      trainer.predict(*model_, steps, set, path);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of(folder_.path("out/many-%04d.tar")), HasSubstr("many-000.tar is there already"));
  EXPECT_THAT(error_of(folder_.path("out/%d-%d.tar")), HasSubstr("such as codes-%04d.tar"));
  EXPECT_THAT(error_of("gs://bucket/one.tar"), HasSubstr("sluice data cp"));
  EXPECT_EQ(error_of(folder_.path("out/one.tar")), "");  // takes the old one's place
  steps.predict_step = [&](Batch& batch) { return NamedValues{{"a/b", batch.columns[0]}}; };
  EXPECT_THAT(error_of(folder_.path("out/one.tar")), HasSubstr("a name without slashes"));
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(base::value_or_throw(base::list_directory(folder_.path("out"))),
            (std::vector<std::string>{"dotted.many-0.tar", "dotted.many-1.tar", "dotted.many-2.tar",
                                      "lines.jsonl", "many-000.idx", "many-000.tar", "many-001.idx",
                                      "many-001.tar", "many-002.idx", "many-002.tar", "one.idx", "one.tar"}));
  for (const char* const name : {"one.tar", "many-{000..002}.tar", "dotted.many-{0..2}.tar"}) {
    std::ifstream in(folder_.path("out/lines.jsonl"));
    const auto stream = data::WebDataset(folder_.path(base::str("out/", name)))
                            .to_tuple("json", "pair.npy", "__key__")
                            .batch(1)
                            .keep()
                            .open();
    int rows = 0;
    for (std::string line; std::getline(in, line); ++rows) {
      const auto expected = nlohmann::json::parse(line);
      const auto batch = stream->next();
      ASSERT_TRUE(batch.has_value());
      EXPECT_EQ(batch->columns[2].text[0], expected["key"]);
      EXPECT_EQ(nlohmann::json::parse(batch->columns[0].text[0]), nlohmann::json({{"y", expected["y"]}}));
      ASSERT_EQ(batch->columns[1].array.describe(), "float32 [1, 2]");
      for (int i = 0; i < 2; ++i)
        EXPECT_EQ(batch->columns[1].array.data<float>()[i], expected["Pair"][i].get<float>());
    }
    EXPECT_EQ(rows, 50);
    EXPECT_FALSE(stream->next().has_value());
  }
}

// Tells a story of tests: its "loss" comes from a list.
Steps told(const Steps& steps, std::vector<double> losses) {
  Steps result = steps;
  result.metrics.clear();
  result.validation_step = [losses, test = 0, batch_of_test = 0](Batch& batch) mutable -> StepOutput {
    const double value = losses.at(static_cast<size_t>(test));
    if (++batch_of_test == 7) {  // 50 samples in batches of 8
      batch_of_test = 0;
      ++test;
    }
    return {.loss = torch::full({8}, value, batch.columns[0].options())};
  };
  return result;
}

TEST_P(Fit, StopsEarlyAndGoesOnCounting) {
  options_.epochs = 10;
  // Better only by less than the difference that counts from the third test on.
  const std::vector<double> losses = {5, 4, 3.995, 3.999, 1};
  const auto run = [&](std::vector<double> story) {
    testing::internal::CaptureStdout();
    Trainer trainer(options_, sets());
    // [stopping]
    trainer.add(std::make_shared<EarlyStopping>(EarlyStoppingOptions{.patience = 2, .min_delta = 0.01}));
    // [end]
    EXPECT_THROW(trainer.add(std::make_shared<EarlyStopping>()), Error);
    const TrainResult result = trainer.fit(model_, told(regression(), std::move(story)));
    return std::pair(result.steps, testing::internal::GetCapturedStdout());
  };
  const auto [steps, out] = run(losses);
  EXPECT_EQ(steps, 4 * 6);
  EXPECT_THAT(out, HasSubstr("The loss of the test got no better in 2 tests: early stopping. The run ends at "
                             "epoch 4, step 24."));
  // In two parts: the second one knows of the test without a better value.
  options_.logdir = folder_.path("parts");
  options_.epochs = 3;
  run(losses);
  options_.epochs = 10;
  options_.resume.from_last = true;
  EXPECT_EQ(run({3.999, 1}).first, 4 * 6);
  EXPECT_EQ(run({1}).first, 4 * 6);  // it has ended, and stays so
  EXPECT_THROW(EarlyStopping({.patience = 0}), Error);
}

TEST_P(Fit, KeepsTheCheckpointsOfTheBestTests) {
  options_.epochs = 6;
  options_.save_top_k = 3;
  const auto kept = [&] {
    std::vector<std::string> names;
    for (const std::string& name : base::value_or_throw(base::list_directory(options_.logdir)))
      if (base::starts_with(name, "top-")) names.push_back(name);
    return names;
  };
  fit(told(regression(), {5, 2, 4, 3, 6, 4}));
  EXPECT_EQ(kept(), (std::vector<std::string>{"top-000000012", "top-000000018", "top-000000024"}));
  for (const std::string& name : kept())
    EXPECT_TRUE(sessions::read_checkpoint(base::join_path(options_.logdir, name))) << name;
  // Left by a process that was killed: one that was not complete, one more than there should be, and one of
  // a future that is no more.
  base::value_or_throw(base::make_directories(folder_.path("run/top-000000099")));
  const std::string last = folder_.path("run/last"), more = folder_.path("run/top-000000036");
  std::filesystem::copy(last, more, std::filesystem::copy_options::recursive);
  options_.epochs = 7;
  options_.resume.from_last = true;
  fit(told(regression(), {1}));
  EXPECT_EQ(kept(), (std::vector<std::string>{"top-000000012", "top-000000024", "top-000000042"}));
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
