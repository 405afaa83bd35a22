// What an update is made of: the batches that an epoch has, all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>

#include "sluice/session/files/checkpoint.h"
#include "sluice/train/run/run_length.h"
#include "tests/train/event_points.h"
#include "tests/train/small_regression.h"

namespace sluice::train::test {
namespace {

using testing::HasSubstr;

class UpdatesOf : public testing::TestWithParam<DeviceKind> {
 protected:
  UpdatesOf() : folder_(scratch()) {
    if (is_initialized()) shutdown();
    torch::manual_seed(3);
    net_ = Net();
    options_ = regression_options(folder_.path("run"), GetParam());
  }
  ~UpdatesOf() override {
    if (is_initialized()) shutdown();
  }
  std::string fit(const Steps& steps) {
    testing::internal::CaptureStdout();
    try {
      Trainer trainer(options_, regression_sets(folder_.path("a.tar")));
      result_ = trainer.fit(net_, steps);
    } catch (...) {
      testing::internal::GetCapturedStdout();
      throw;
    }
    return testing::internal::GetCapturedStdout();
  }
  std::vector<nlohmann::json> rows(const std::string& split, const std::string& key) const {
    std::ifstream in(folder_.path("run/metrics.jsonl"));
    std::vector<nlohmann::json> found;
    for (std::string line; std::getline(in, line);)
      if (auto row = nlohmann::json::parse(line); row["split"] == split && row.contains(key))
        found.push_back(row);
    return found;
  }
  // The batches of the first epoch.
  std::vector<std::vector<torch::Tensor>> batches() const {
    std::vector<std::vector<torch::Tensor>> found;
    Options cpu;
    cpu.device = "cpu";
    auto session = start(cpu);
    for (auto& batch : session.feed(*regression_sets(folder_.path("a.tar")).train, {.epoch = 0}))
      found.push_back(batch.columns);
    return found;
  }
  Net twin() const {
    Net twin;
    torch::NoGradGuard no_grad;
    for (const auto& item : net_->named_parameters())
      twin->named_parameters()[item.key()].copy_(item.value());
    return twin;
  }

  base::TemporaryDirectory folder_;
  Net net_{nullptr};
  TrainOptions options_;
  TrainResult result_;
};

// Five batches, of which an update takes two: the last one has one, and is divided by one. The loss of an
// update is the mean over its batches. Against LibTorch alone.
TEST_P(UpdatesOf, TheRestOfAnEpochIsAnUpdateOfItsOwn) {
  options_.accumulate = 2;
  options_.epochs = 1;
  options_.quiet = false;
  Net other = twin();
  torch::optim::SGD sgd(other->parameters(), 0.05);
  options_.momentum = 0;
  const auto all = batches();
  ASSERT_EQ(all.size(), 5U);
  std::vector<double> losses, errors;
  for (size_t first = 0; first < all.size(); first += 2) {
    const size_t count = std::min<size_t>(2, all.size() - first);
    sgd.zero_grad();
    double loss = 0, error = 0;
    for (size_t i = first; i < first + count; ++i) {
      const torch::Tensor difference = other(all[i][0]) - all[i][1];
      const torch::Tensor mean = difference.square().mean();
      (mean / static_cast<double>(count)).backward();
      loss += mean.item<double>() / static_cast<double>(count);
      error += difference.abs().mean().item<double>() / static_cast<double>(count);
    }
    sgd.step();
    losses.push_back(loss);
    errors.push_back(error);
  }
  const std::string out = fit(regression_steps(net_));
  EXPECT_EQ(result_.steps, 3);
  EXPECT_THAT(out, HasSubstr("3 steps an epoch"));
  EXPECT_THAT(out, HasSubstr("4 samples left out of each epoch"));  // 44 samples, 5 batches of 8
  EXPECT_THAT(out, HasSubstr("Replica Train Samples=40, "));
  net_->to(torch::kCPU);
  for (const auto& item : other->named_parameters())
    EXPECT_TRUE(torch::allclose(net_->named_parameters()[item.key()], item.value(), 1e-5, 1e-6))
        << item.key();
  const auto trained = rows("train", "loss");
  const Points curve = curves_in(folder_.path("run")).at("Loss");
  ASSERT_EQ(trained.size(), 3U);
  ASSERT_EQ(curve.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(trained[i]["loss"].get<double>(), losses[i], 1e-5) << i;
    EXPECT_NEAR(trained[i]["mae"].get<double>(), errors[i], 1e-5) << i;
    EXPECT_NEAR(curve[i].second, losses[i], 1e-5) << i;
  }
}

// Weights count over the whole group, as they do for its gradients.
TEST_P(UpdatesOf, TheLossOfWeightedBatchesIsTheirWeightedMean) {
  options_.accumulate = 5;
  options_.epochs = 1;
  options_.lr = 0;
  Steps steps;
  int64_t number = 0;
  steps.training_step = [&, net = net_](Batch& batch) mutable -> StepOutput {
    ++number;
    const auto options = batch.columns[0].options();
    const torch::Tensor loss = net(batch.columns[0]).mean() * 0 + static_cast<double>(number);
    return {.loss = loss, .weight = torch::full({}, static_cast<double>(number * number), options)};
  };
  steps.validation_step = regression_steps(net_).validation_step;
  fit(steps);
  const auto trained = rows("train", "loss");
  ASSERT_EQ(trained.size(), 1U);
  EXPECT_NEAR(trained[0]["loss"].get<double>(), (1.0 + 8 + 27 + 64 + 125) / (1 + 4 + 9 + 16 + 25), 1e-5);
}

TEST_P(UpdatesOf, AnEpochOfFewerBatchesIsOneUpdate) {
  options_.accumulate = 9;
  options_.epochs = 2;
  testing::internal::CaptureStderr();
  fit(regression_steps(net_));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("an epoch has 5 batches, less than --accumulate 9"));
  EXPECT_EQ(result_.steps, 2);
}

INSTANTIATE_TEST_SUITE_P(Devices, UpdatesOf, testing::Values(DeviceKind::kCpu, DeviceKind::kXla),
                         [](const auto& info) { return info.param == DeviceKind::kXla ? "xla" : "cpu"; });

// Rows whose number depends on the epoch, as packed ones do: epoch e has counts[e] batches of 8.
class Varying : public data::Dataset {
 public:
  Varying(data::WebDataset set, std::vector<int64_t> counts)
      : set_(std::move(set)), counts_(std::move(counts)) {}
  std::unique_ptr<data::Stream> open(const data::OpenOptions& options) const override {
    return std::make_unique<Some>(set_.open(options), batches(1, options.epoch) - options.skip_batches);
  }
  std::unique_ptr<data::Stream> resume(const std::string&, const data::OpenOptions& options) const override {
    return open(options);
  }
  std::string state(const data::OpenOptions&) const override { return "varying"; }
  std::int64_t size() const override { return set_.size(); }
  std::int64_t batches(std::int64_t, std::int64_t epoch) const override {
    return counts_[static_cast<size_t>(epoch) % counts_.size()];
  }
  std::int64_t batch_size() const override { return set_.batch_size(); }
  data::Remainder remainder() const override { return set_.remainder(); }
  const std::vector<float>& mean() const override { return set_.mean(); }
  const std::vector<float>& deviation() const override { return set_.deviation(); }

 private:
  class Some : public data::Stream {
   public:
    Some(std::unique_ptr<data::Stream> all, int64_t left) : all_(std::move(all)), left_(left) {}
    std::optional<data::Batch> next() override { return left_-- > 0 ? all_->next() : std::nullopt; }
    std::string state() const override { return all_->state(); }
    data::Statistics statistics() const override { return all_->statistics(); }

   private:
    std::unique_ptr<data::Stream> all_;
    int64_t left_;
  };
  data::WebDataset set_;
  std::vector<int64_t> counts_;
};

TEST(RunLength, FollowsTheEpochsThatComeAndNamesEmptyOnes) {
  const auto folder = scratch();
  TrainOptions options = regression_options(folder.path("run"));
  options.epochs = 5;
  options.lr_schedule = LrSchedule::kCosine;
  options.warmup_epochs = 0;
  const std::vector<int64_t> counts = {3, 0, 5, 1, 2};
  auto set = *std::static_pointer_cast<const data::WebDataset>(regression_sets(folder.path("a.tar")).train);
  torch::manual_seed(3);
  Net net;
  Steps steps = regression_steps(net);
  steps.validation_step = nullptr;
  testing::internal::CaptureStderr();
  TrainResult result = Trainer(options, Sets(Varying(set, counts))).fit(net, steps);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("epoch 2 has no step"));
  EXPECT_EQ(result.steps, 11);
  // Half a cosine over exactly the eleven steps.
  std::ifstream in(folder.path("run/metrics.jsonl"));
  std::vector<double> rates;
  for (std::string line; std::getline(in, line);)
    if (const auto row = nlohmann::json::parse(line); row.contains("learning_rate"))
      rates.push_back(row["learning_rate"].get<double>());
  ASSERT_EQ(rates.size(), 11U);
  for (size_t i = 0; i < rates.size(); ++i)
    EXPECT_NEAR(rates[i], 0.05 * 0.5 * (1 + std::cos(std::numbers::pi * static_cast<double>(i) / 11)), 1e-9)
        << i;
}

}  // namespace
}  // namespace sluice::train::test
