// Captured steps of a session: several replicas, gradients that add up, counting, and what belongs outside.
#include "sluice/device/capture/capture.h"
#include "sluice/session/session.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

using testing::HasSubstr;
namespace F = torch::nn::functional;

constexpr int kSteps = 9;

class CaptureSession : public testing::Test {
 protected:
  void SetUp() override {
    if (on_cpu()) GTEST_SKIP() << "needs the device";
    torch::set_num_threads(1);
    if (is_initialized()) shutdown();
  }
};

// The weights after kSteps, and how many calls were replayed.
struct Trained {
  std::vector<torch::Tensor> weights;
  int64_t replays = 0, steps = 0;
};

// `parts` batches are added up for each update.
Trained train(int replicas, int parts, bool captured) {
  Options options;
  options.xla.devices = replicas;
  options.xla.cache = false;
  Session session = start(options);
  torch::manual_seed(4);
  torch::nn::Linear model(6, 3);
  model->to(session.device());
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.05));
  const auto body = [&](torch::Tensor image, torch::Tensor label) {
    torch::Tensor loss;
    for (int part = 0; part < parts; ++part) {
      loss = F::cross_entropy(model->forward(image * (part + 1.0)), label) / parts;
      loss.backward();
      std::optional<Accumulate> more;
      if (part + 1 < parts) more.emplace(session);
      session.step(optimizer, {.clip_norm = 1.0});
    }
    return loss;
  };
  auto step = capture(body);
  for (int i = 0; i < kSteps; ++i) {
    std::vector<torch::Tensor> images, labels;
    for (int r = 0; r < replicas; ++r) {
      images.push_back(torch::sin(torch::arange(30, torch::kFloat) * (i + 2 + r)).view({5, 6}));
      labels.push_back((torch::arange(5) + i + r) % 3);
    }
    const torch::Tensor image = session.upload(images), label = session.upload(labels);
    if (captured)
      step(image, label);
    else
      body(image, label);
  }
  Trained trained;
  trained.replays = step.captured().replays();
  trained.steps = session.steps();
  if (captured) {
    EXPECT_GE(trained.replays, kSteps - 5) << step.captured().reason();
  }
  session.check_replicas(*model);
  for (const torch::Tensor& weight : model->parameters()) trained.weights.push_back(weight.detach().cpu());
  return trained;
}

void expect_captured_equals_recorded(int replicas, int parts) {
  const Trained recorded = train(replicas, parts, false);
  shutdown();
  const Trained captured = train(replicas, parts, true);
  EXPECT_EQ(captured.steps, recorded.steps);
  for (size_t i = 0; i < recorded.weights.size(); ++i)
    EXPECT_TRUE(torch::equal(captured.weights[i], recorded.weights[i])) << i;
}

TEST_F(CaptureSession, TwoReplicasHaveTheSameWeights) { expect_captured_equals_recorded(2, 1); }
TEST_F(CaptureSession, GradientsAddUpInsideACall) { expect_captured_equals_recorded(1, 3); }

TEST_F(CaptureSession, LoggingBelongsOutside) {
  Options options;
  options.xla.cache = false;
  Session session = start(options);
  torch::Tensor x = torch::ones({3}, session.device());
  auto step = capture([&](torch::Tensor add) {
    x.add_(add);
    session.log_every(5, {{"x", x.sum()}});
  });
  const torch::Tensor one = torch::ones({3}, session.device());
  EXPECT_THAT(warned([&] {
                for (int i = 0; i < 8; ++i) step(one);
              }),
              HasSubstr("session.log_every is called in it"));
  EXPECT_EQ(step.captured().replays(), 0);
}

}  // namespace
}  // namespace sluice::tests
