// BatchNorm's statistics under averages of the weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "sluice/session/files/checkpoint.h"
#include "tests/train/small_regression.h"

namespace sluice::train::test {
namespace {

class Averages : public testing::TestWithParam<DeviceKind> {
 protected:
  Averages() : folder_(scratch()) {
    if (is_initialized()) shutdown();
    options_ = regression_options(folder_.path("run"), GetParam());
  }
  ~Averages() override {
    if (is_initialized()) shutdown();
  }
  TrainResult fit(
      const std::shared_ptr<Callback>& callback = nullptr,
      const std::function<Net()>& make = [] { return Net(); }) {
    torch::manual_seed(3);
    net_ = make();
    Trainer trainer(options_, regression_sets(folder_.path("a.tar")));
    if (callback) trainer.add(callback);
    return trainer.fit(net_, regression_steps(net_));
  }
  std::map<std::string, torch::Tensor> weights(const std::string& name) const {
    const auto read = base::value_or_throw(sessions::read_checkpoint(folder_.path(name)));
    return {read.model.begin(), read.model.end()};
  }

  base::TemporaryDirectory folder_;
  Net net_{nullptr};
  TrainOptions options_;
};

// torch.optim.swa_utils.update_bn, on the host: statistics are reset, momentum None makes them the mean over
// the batches of an epoch, whose order is that of its training.
TEST_P(Averages, TheMeanOfTheWeightsHasStatisticsOfItsOwn) {
  options_.swa_start = 2;
  const TrainResult result = fit();
  const auto saved = weights("run/last");
  Net averaged;
  torch::NoGradGuard no_grad;
  for (const auto& item : averaged->named_parameters()) item.value().copy_(saved.at(item.key()));
  averaged->norm->reset_running_stats();
  averaged->norm->options.momentum(std::nullopt);
  averaged->train();
  Options cpu;
  cpu.device = "cpu";
  const Sets sets = regression_sets(folder_.path("a.tar"));
  if (is_initialized()) shutdown();
  auto session = start(cpu);
  for (auto& batch : session.feed(*sets.train, {.epoch = 2})) averaged(batch.columns[0]);
  for (const char* const name : {"norm.running_mean", "norm.running_var"})
    EXPECT_TRUE(torch::allclose(averaged->named_buffers()[name], saved.at(name), 1e-5, 1e-6))
        << name << averaged->named_buffers()[name] << saved.at(name);
  // The test measures just that.
  averaged->eval();
  double sum = 0;
  for (auto& batch : session.feed(*sets.test, {.epoch = 0})) {
    const torch::Tensor error = (averaged(batch.columns[0]) - batch.columns[1]).square().squeeze(1);
    sum += torch::where(batch.mask, error, torch::zeros_like(error)).sum().item<double>();
  }
  EXPECT_NEAR(result.values.front().second, sum / kSamples, 1e-5);
  // What is trained has kept the statistics of its own training: 15 batches.
  EXPECT_EQ(saved.at("norm.num_batches_tracked").item<int64_t>(), 15);
}

// Keeps BatchNorm's statistics as each step has left them.
struct Statistics : Callback {
  std::string name() const override { return "statistics"; }
  void after_step(Run& run) override {
    const auto buffers = run.module().named_buffers();
    means.push_back(buffers["norm.running_mean"].detach().cpu().to(torch::kDouble).clone());
    variances.push_back(buffers["norm.running_var"].detach().cpu().to(torch::kDouble).clone());
  }
  std::vector<torch::Tensor> means, variances;
};

// As timm's ModelEmaV3 and AveragedModel(use_buffers=True) do: a ← d a + (1 − d) b, and a = b at first.
TEST_P(Averages, AMovingAverageIsOneOfTheStatisticsToo) {
  options_.ema = 0.8;
  auto statistics = std::make_shared<Statistics>();
  fit(statistics);
  const auto moving = [](const std::vector<torch::Tensor>& steps) {
    torch::Tensor average = steps.front();
    for (size_t i = 1; i < steps.size(); ++i) average = 0.8 * average + 0.2 * steps[i];
    return average;
  };
  const auto saved = weights("run/last");
  ASSERT_EQ(statistics->means.size(), 15U);
  EXPECT_TRUE(torch::allclose(saved.at("norm.running_mean").to(torch::kDouble), moving(statistics->means),
                              1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(saved.at("norm.running_var").to(torch::kDouble), moving(statistics->variances),
                              1e-5, 1e-6));
}

struct MaskedNetImpl : NetImpl {
  MaskedNetImpl() { register_buffer("mask", mask); }
  torch::Tensor mask = torch::tensor({0.0F, -std::numeric_limits<float>::infinity()});
};

// The mean of infinity and infinity by their difference would be NaN, which no checkpoint may have.
TEST_P(Averages, AMaskOfInfinityStaysWhatItIs) {
  options_.ema = 0.8;
  fit(nullptr, [] { return Net(std::shared_ptr<NetImpl>(std::make_shared<MaskedNetImpl>())); });
  EXPECT_TRUE(torch::equal(weights("run/last").at("mask"), MaskedNetImpl().mask));
}

INSTANTIATE_TEST_SUITE_P(Devices, Averages, testing::Values(DeviceKind::kCpu, DeviceKind::kXla),
                         [](const auto& info) { return info.param == DeviceKind::kXla ? "xla" : "cpu"; });

}  // namespace
}  // namespace sluice::train::test
