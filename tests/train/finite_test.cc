// No checkpoint has weights that a run cannot go on with, and --on-nan skip leaves such updates out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>

#include "sluice/session/files/checkpoint.h"
#include "sluice/session/finite.h"
#include "tests/train/small_regression.h"

namespace sluice::train::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Zero, whose gradient for the parameter is 0 · ∞.
torch::Tensor zero_with_nan_gradient(const torch::Tensor& parameter) {
  return (parameter * 0).square().sum().sqrt();
}

class Finite : public testing::TestWithParam<DeviceKind> {
 protected:
  Finite() : folder_(scratch()) {
    if (is_initialized()) shutdown();
    torch::manual_seed(3);
    net_ = Net();
    options_ = regression_options(folder_.path("run"), GetParam());
  }
  ~Finite() override {
    if (is_initialized()) shutdown();
  }

  // The gradients of the batch with this number, from 1, are NaN; or its loss is.
  Steps broken(int64_t number, bool loss = false) {
    Steps steps = regression_steps(net_);
    steps.training_step = [this, number, loss, step = steps.training_step](Batch& batch) {
      StepOutput output = step(batch);
      if (!torch::GradMode::is_enabled() || ++batches_ != number) return output;
      output.loss =
          loss ? output.loss * std::nanf("") : output.loss + zero_with_nan_gradient(net_->last->weight);
      return output;
    };
    return steps;
  }
  // What fit() throws; "" when it goes well.
  std::string error_of(const Steps& steps, const std::shared_ptr<Callback>& callback = nullptr) {
    batches_ = 0;
    try {
      Trainer trainer(options_, regression_sets(folder_.path("a.tar")));
      if (callback) trainer.add(callback);
      result_ = trainer.fit(net_, steps);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  sessions::Checkpoint last() const {
    return base::value_or_throw(sessions::read_checkpoint(folder_.path("run/last")));
  }

  base::TemporaryDirectory folder_;
  Net net_{nullptr};
  TrainOptions options_;
  TrainResult result_;
  int64_t batches_ = 0;
};

// Three epochs of five steps; the loss of the step itself is finite.
TEST_P(Finite, ANanGradientInTheLastUpdateLeavesTheCheckpointBefore) {
  EXPECT_THAT(error_of(broken(15)),
              AllOf(HasSubstr("run/last was not written: after step 15 "), HasSubstr(" NaN or infinite"),
                    HasSubstr("The last good checkpoint is " + folder_.path("run/last"))));
  const auto saved = last();
  EXPECT_EQ(saved.progress.step, 10);
  for (const auto& [name, value] : saved.model) EXPECT_TRUE(sessions::all_finite(value)) << name;
}

TEST_P(Finite, SoDoesOneBeforeACheckpointWithinAnEpochOrBeforeASignal) {
  options_.save_steps = 2;
  EXPECT_THAT(error_of(broken(4)), HasSubstr("The last good checkpoint is " + folder_.path("run/last")));
  EXPECT_EQ(last().progress.step, 2);
  options_.save_steps = 0;
  options_.logdir = folder_.path("other");
  net_ = Net();
  Steps steps = broken(7);
  steps.training_step = [this, step = steps.training_step](Batch& batch) {
    if (batches_ + 1 == 7) std::raise(SIGTERM);
    return step(batch);
  };
  EXPECT_THAT(error_of(steps), HasSubstr("last was not written: after step 7 "));
  EXPECT_EQ(base::value_or_throw(sessions::read_progress(folder_.path("other/last"))).step, 5);
}

TEST_P(Finite, ANanLossInAnyBatchOfAnUpdateIsSeen) {
  options_.accumulate = 2;  // the updates have the batches 1 and 2, 3 and 4, and 5
  EXPECT_THAT(error_of(broken(3, /*loss=*/true)),
              AllOf(HasSubstr("the loss is nan at step 2 "), HasSubstr("There is no checkpoint yet.")));
}

TEST_P(Finite, ACheckpointThatIsBeingWrittenIsNamed) {
  Steps steps = broken(6, /*loss=*/true);
  steps.files = {{"large.bin", std::string(std::size_t{48} << 20, 'x')}};
  EXPECT_THAT(error_of(steps), HasSubstr("The last good checkpoint is " + folder_.path("run/last")));
}

TEST_P(Finite, AveragesAndWhatIsTrainedBesideThemAreLookedAt) {
  options_.momentum = 0;
  // The mean of steps 7 and 14 is sound, the weights of step 15 are not.
  EXPECT_THAT(error_of(broken(15), std::make_shared<WeightAverage>(WeightAverageOptions{.every_steps = 7})),
              HasSubstr(" was not written: after step 15 callback.weight average."));
  EXPECT_EQ(last().progress.step, 10);
}

// The same updates with LibTorch alone, without the one that is skipped.
TEST_P(Finite, SkipLeavesOutTheUpdateAndCountsIt) {
  options_.on_nan = OnNan::kSkip;
  options_.epochs = 1;
  options_.momentum = 0.9;
  Net twin;
  {
    torch::NoGradGuard no_grad;
    for (const auto& item : net_->named_parameters())
      twin->named_parameters()[item.key()].copy_(item.value());
  }
  torch::optim::SGD sgd(twin->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  Options cpu;
  cpu.device = "cpu";
  int64_t step = 0;
  {
    auto session = start(cpu);
    for (auto& batch : session.feed(*regression_sets(folder_.path("a.tar")).train, {.epoch = 0})) {
      if (++step == 3) continue;
      sgd.zero_grad();
      (twin(batch.columns[0]) - batch.columns[1]).square().mean().backward();
      sgd.step();
    }
  }
  ASSERT_EQ(step, 5);
  testing::internal::CaptureStderr();
  EXPECT_EQ(error_of(broken(3)), "");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("step 3: its loss or gradients are NaN or "
                                                                "infinite, so its update was skipped"));
  EXPECT_EQ(last().progress.skipped, 1);
  EXPECT_EQ(last().progress.step, 5);
  const auto tensors = sessions::module_tensors(*twin);
  const auto saved = last();
  for (size_t i = 0; i < tensors.size(); ++i)
    EXPECT_TRUE(torch::allclose(saved.model[i].second, tensors[i].second, 1e-5, 1e-6)) << tensors[i].first;
  const std::string rows = base::value_or_throw(base::read_file(folder_.path("run/metrics.jsonl")));
  EXPECT_THAT(rows, HasSubstr("\"skipped_updates\": 1"));
}

TEST_P(Finite, SkipEndsARunThatNoLongerTrains) {
  options_.on_nan = OnNan::kSkip;
  options_.epochs = 30;
  options_.test_every_epochs = 30;
  Steps steps = regression_steps(net_);
  steps.training_step = [step = steps.training_step](Batch& batch) {
    StepOutput output = step(batch);
    output.loss = output.loss * kInfinity;
    return output;
  };
  testing::internal::CaptureStderr();
  EXPECT_THAT(error_of(steps), HasSubstr("the last 100 updates were all skipped"));
  testing::internal::GetCapturedStderr();
  for (const auto& [name, value] : last().model) EXPECT_TRUE(sessions::all_finite(value)) << name;
}

INSTANTIATE_TEST_SUITE_P(Devices, Finite, testing::Values(DeviceKind::kCpu, DeviceKind::kXla),
                         [](const auto& info) { return info.param == DeviceKind::kXla ? "xla" : "cpu"; });

struct MaskedImpl : torch::nn::Module {
  MaskedImpl() {
    register_parameter("weight", weight);
    register_buffer("mask", mask);
  }
  torch::Tensor weight = torch::ones({3}), mask = torch::full({3}, -kInfinity);
};

// A mask of -inf is no fault, NaN is one wherever it stands.
TEST(FiniteCheckpoints, BuffersMayBeInfiniteButNotNan) {
  const auto folder = scratch();
  const sessions::Backend cpu("cpu", {}, {});
  MaskedImpl model;
  torch::optim::SGD sgd(model.parameters(), 0.1);
  const auto save = [&] {
    const auto written =
        sessions::write_checkpoint(sessions::take_snapshot(cpu, model, {&sgd}, {}), folder.path("last"));
    return written ? std::string() : std::string(written.error().what());
  };
  EXPECT_EQ(save(), "");
  torch::NoGradGuard no_grad;
  model.mask[1] = std::nanf("");
  EXPECT_THAT(save(), HasSubstr("mask cannot be trained with"));
  model.mask[1] = 0;
  model.weight[2] = kInfinity;
  EXPECT_THAT(save(), HasSubstr("weight cannot be trained with: 1 of its 3 values is NaN or infinite"));
  model.weight.requires_grad_(false);
  EXPECT_EQ(save(), "");
}

TEST(FiniteCheckpoints, AllTypesOfNumbersAreLookedAt) {
  for (const auto type :
       {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16, torch::kComplexFloat}) {
    torch::Tensor values = torch::ones({2, 3}, type);
    EXPECT_TRUE(sessions::all_finite(values)) << type;
    values[1][2] = kInfinity;
    EXPECT_FALSE(sessions::all_finite(values)) << type;
    EXPECT_FALSE(sessions::any_nan(values)) << type;
    EXPECT_FALSE(sessions::all_finite(values.t())) << type;
    values[1][2] = std::nanf("");
    EXPECT_TRUE(sessions::any_nan(values)) << type;
  }
  EXPECT_TRUE(sessions::all_finite(torch::full({2}, std::numeric_limits<int64_t>::max(), torch::kLong)));
  EXPECT_TRUE(sessions::all_finite(torch::empty({0})));
  EXPECT_TRUE(sessions::all_finite(torch::full({1}, std::numeric_limits<float>::denorm_min())));
}

}  // namespace
}  // namespace sluice::train::test
