// Tests and predictions of trainings by a user's own steps, and what follows from them: early stopping, and
// the checkpoints that are kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sluice/base/text/strings.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/train/run/test_clock.h"
#include "sluice/train/testing/fit_training.h"

namespace sluice::train {
namespace {

using testing::HasSubstr;

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

}  // namespace
}  // namespace sluice::train
