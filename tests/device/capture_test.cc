// sluice::capture: a captured step gives the weights of a recorded one, bit for bit, and says when it cannot.
#include "sluice/device/capture/capture.h"

#include "sluice/base/error.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

using testing::HasSubstr;
namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int kSteps = 10;

class Capture : public testing::Test {
 protected:
  void SetUp() override {
    if (on_cpu()) GTEST_SKIP() << "needs the device";
  }
};

// A classifier of 8 numbers in 3 classes, its optimizer, and a moving average of its weights.
struct Net {
  template <typename Optimizer, typename Options>
  static Net make(const Options& options, double dropout = 0) {
    torch::manual_seed(1);
    Net net;
    net.model = nn::Sequential(nn::Linear(8, 16), nn::BatchNorm1d(16), nn::ReLU(), nn::Dropout(dropout),
                               nn::Linear(16, 3));
    net.model->to(test_device());
    net.optimizer = std::make_unique<Optimizer>(net.model->parameters(), options);
    torch::manual_seed(2);
    return net;
  }

  torch::Tensor step(const torch::Tensor& image, const torch::Tensor& label) {
    const torch::Tensor loss = F::cross_entropy(model->forward(image), label);
    loss.backward();
    sluice::step(*optimizer);
    optimizer->zero_grad();
    return loss;
  }
  void average() {
    torch::NoGradGuard no_grad;
    const auto parameters = model->parameters();
    if (averages.empty())
      for (const auto& p : parameters) averages.push_back(p.detach().clone());
    for (size_t i = 0; i < averages.size(); ++i) averages[i].mul_(0.9).add_(parameters[i], 0.1);
  }
  std::vector<torch::Tensor> values() const {
    std::vector<torch::Tensor> all;
    for (const auto& list : {model->parameters(), model->buffers(), averages})
      for (const auto& tensor : list) all.push_back(tensor.detach().cpu());
    return all;
  }

  nn::Sequential model{nullptr};
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::vector<torch::Tensor> averages;
};

struct Batch {
  torch::Tensor image, label;
};
Batch batch(int number, int64_t size = 6) {
  const auto options = torch::TensorOptions().dtype(torch::kFloat);
  const torch::Tensor image = torch::sin(torch::arange(size * 8, options) * (number + 1)).view({size, 8});
  return {image.to(test_device()), ((torch::arange(size) + number) % 3).to(test_device())};
}

void expect_equal(const std::vector<torch::Tensor>& found, const std::vector<torch::Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(torch::equal(found[i], expected[i])) << "tensor " << i;
}

// Trains two equal nets, one of them captured. `around(net, i)` is called before step i of both.
template <typename Optimizer, typename Options>
void expect_captured_equals_recorded(
    const Options& options, double dropout = 0,
    const std::function<void(Net&, int)>& around = [](Net&, int) {}, bool average = false) {
  std::vector<torch::Tensor> losses, captured_losses;
  Net recorded = Net::make<Optimizer>(options, dropout);
  for (int i = 0; i < kSteps; ++i) {
    around(recorded, i);
    const auto [image, label] = batch(i);
    losses.push_back(recorded.step(image, label).detach());
    if (average) recorded.average();
    sync("step");
  }
  Net net = Net::make<Optimizer>(options, dropout);
  auto step = capture([&](torch::Tensor image, torch::Tensor label) {
    torch::Tensor loss = net.step(image, label);
    if (average) net.average();
    return loss;
  });
  for (int i = 0; i < kSteps; ++i) {
    around(net, i);
    const auto [image, label] = batch(i);
    captured_losses.push_back(step(image, label));
  }
  EXPECT_GE(step.captured().replays(), kSteps - 6) << step.captured().reason();
  expect_equal(net.values(), recorded.values());
  for (int i = 0; i < kSteps; ++i) EXPECT_TRUE(torch::equal(captured_losses[i].cpu(), losses[i].cpu())) << i;
}

TEST_F(Capture, SgdWithAScheduleHasTheSameWeights) {
  const auto schedule = [](Net& net, int i) {
    for (auto& group : net.optimizer->param_groups()) group.options().set_lr(0.1 / (i + 1));
  };
  expect_captured_equals_recorded<torch::optim::SGD>(
      torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(1e-3).nesterov(true), 0, schedule);
  expect_captured_equals_recorded<torch::optim::SGD>(torch::optim::SGDOptions(0.1), 0, schedule);
}

TEST_F(Capture, AdamCountsItsStepsAndDropoutDrawsNewKeys) {
  expect_captured_equals_recorded<torch::optim::Adam>(torch::optim::AdamOptions(1e-2), 0.3);
  expect_captured_equals_recorded<torch::optim::AdamW>(
      torch::optim::AdamWOptions(1e-2).weight_decay(0.1).amsgrad(true), 0.3);
}

TEST_F(Capture, OtherOptimizersHaveTheSameWeights) {
  expect_captured_equals_recorded<torch::optim::RMSprop>(
      torch::optim::RMSpropOptions(1e-2).centered(true).momentum(0.5));
  expect_captured_equals_recorded<torch::optim::Adagrad>(torch::optim::AdagradOptions(1e-2).lr_decay(0.1));
}

// The gradients of tensors that were put together are parts of one tensor.
TEST_F(Capture, GradientsMayBePartsOfATensor) {
  const auto train = [](bool captures) {
    std::vector<torch::Tensor> weights;
    for (int i = 0; i < 3; ++i)
      weights.push_back(torch::full({8, 2}, 0.1 * (i + 1)).to(test_device()).requires_grad_());
    torch::optim::SGD optimizer(weights, torch::optim::SGDOptions(0.1));
    const auto step = [&](const torch::Tensor& image, const torch::Tensor& label) {
      const torch::Tensor loss = F::cross_entropy(torch::matmul(image, torch::cat(weights, 1)), label);
      loss.backward();
      sluice::step(optimizer);
      optimizer.zero_grad();
      return loss.detach();
    };
    auto captured = capture(step);
    for (int i = 0; i < kSteps; ++i) {
      const auto [image, label] = batch(i);
      if (captures)
        captured(image, label);
      else
        step(image, label);
      if (!captures) sync("step");
    }
    if (captures) {
      EXPECT_GE(captured.captured().replays(), kSteps - 6) << captured.captured().reason();
    }
    std::vector<torch::Tensor> values;
    for (const torch::Tensor& weight : weights) values.push_back(weight.detach().cpu());
    return values;
  };
  expect_equal(train(true), train(false));
}

TEST_F(Capture, AMovingAverageHoldsItsOwnValues) {
  expect_captured_equals_recorded<torch::optim::SGD>(
      torch::optim::SGDOptions(0.1), 0, [](Net&, int) {}, /*average=*/true);
}

TEST_F(Capture, WhoHoldsAWeightKeepsItsValue) {
  Net net = Net::make<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9));
  auto step = capture([&](torch::Tensor image, torch::Tensor label) { return net.step(image, label); });
  const auto [image, label] = batch(0);
  for (int i = 0; i < 6; ++i) step(image, label);
  const torch::Tensor weight = net.model->parameters()[0].detach();
  const torch::Tensor held = weight.clone(), before = weight.cpu();
  const int64_t replays = step.captured().replays();
  step(image, label);
  EXPECT_EQ(step.captured().replays(), replays + 1);
  EXPECT_TRUE(torch::equal(held.cpu(), before));
  EXPECT_FALSE(torch::equal(weight.cpu(), before));
}

TEST_F(Capture, WhoSharesAValueThatIsReplacedKeepsIt) {
  const torch::Tensor ones = torch::ones({4}, test_device());
  const torch::Tensor kept = ones * 3, weight = kept.clone();
  auto step = capture([&](torch::Tensor add) {
    const torch::Tensor sum = kept + 2 * add;  // the one value is read here, and given up below
    weight.add_(add);
    return sum;
  });
  for (int i = 0; i < 8; ++i) {
    weight.copy_(kept);
    EXPECT_EQ(step(ones)[0].item<float>(), 5) << i;
    EXPECT_EQ(weight[0].item<float>(), 4) << i;
    EXPECT_EQ(kept[0].item<float>(), 3) << i;
  }
  EXPECT_GT(step.captured().replays(), 0) << step.captured().reason();
}

TEST_F(Capture, WeightsThatAreWrittenBetweenCallsCount) {
  Net net = Net::make<torch::optim::SGD>(torch::optim::SGDOptions(0.1));
  auto step = capture([&](torch::Tensor image, torch::Tensor label) { return net.step(image, label); });
  const auto [image, label] = batch(0);
  for (int i = 0; i < 6; ++i) step(image, label);
  {
    torch::NoGradGuard no_grad;
    for (auto& p : net.model->parameters()) p.zero_();
  }
  const torch::Tensor loss = step(image, label);
  EXPECT_NEAR(loss.item<float>(), std::log(3.0), 1e-5);
}

TEST_F(Capture, AnotherShapeIsRecorded) {
  Net net = Net::make<torch::optim::SGD>(torch::optim::SGDOptions(0.1));
  Net other = Net::make<torch::optim::SGD>(torch::optim::SGDOptions(0.1));
  auto step = capture([&](torch::Tensor image, torch::Tensor label) { return net.step(image, label); });
  for (int i = 0; i < 12; ++i) {
    const auto [image, label] = batch(i, i % 3 == 2 ? 4 : 6);
    step(image, label);
    other.step(image, label);
    sync("step");
  }
  EXPECT_GE(step.captured().replays(), 4);
  EXPECT_EQ(step.captured().replays() + step.captured().recordings(), 12);
  expect_equal(net.values(), other.values());
}

TEST_F(Capture, AChangedControlFlowIsFoundAndSaid) {
  torch::Tensor x = torch::zeros({4}, test_device());
  bool twice = false;
  CaptureOptions options;
  options.check_every = 5;
  auto step = capture(
      [&](torch::Tensor add) {
        x.add_(add);
        if (twice) x.mul_(add);
      },
      options);
  const torch::Tensor two = torch::full({4}, 2.0, test_device());
  for (int i = 0; i < 6; ++i) step(two);
  EXPECT_GT(step.captured().replays(), 0);
  twice = true;
  testing::internal::CaptureStderr();
  for (int i = 0; i < 6; ++i) step(two);
  sync_and_wait();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("'capture' is no longer what was captured"));
  EXPECT_THAT(said, HasSubstr("aten::mul"));
}

TEST_F(Capture, NumbersThatChangeAreRecorded) {
  torch::Tensor x = torch::zeros({4}, test_device());
  double number = 0;
  auto step = capture([&](torch::Tensor add) { x.add_(add * number); });
  const torch::Tensor one = torch::ones({4}, test_device());
  testing::internal::CaptureStderr();
  for (int i = 0; i < 10; ++i) {
    number = i;
    step(one);
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("a number of aten::mul"));
  EXPECT_EQ(step.captured().replays(), 0);
  EXPECT_EQ(x[0].item<float>(), 45);
}

TEST_F(Capture, ArgumentsMayBeNumbersAndOfTheHost) {
  torch::Tensor x = torch::zeros({4}, test_device());
  auto step = capture([&](torch::Tensor add, double factor) {
    x.add_(add * factor);
    return std::tuple(x * 2, x.sum());
  });
  for (int i = 0; i < 12; ++i) {
    const auto [doubled, sum] = step(torch::full({4}, 1.0f + i), i % 2 == 0 ? 1.0 : 10.0);
    EXPECT_EQ(doubled[0].item<float>() * 2, sum.item<float>());
  }
  EXPECT_EQ(x[0].item<float>(), 1 + 3 + 5 + 7 + 9 + 11 + 10 * (2 + 4 + 6 + 8 + 10 + 12));
  EXPECT_GT(step.captured().replays(), 0);
}

TEST_F(Capture, WritesToArgumentsStayInside) {
  auto step = capture([](torch::Tensor x) { return x.add_(1); });
  const torch::Tensor x = torch::zeros({3}, test_device());
  for (int i = 0; i < 6; ++i) EXPECT_EQ(step(x)[0].item<float>(), 1);
  EXPECT_EQ(x[0].item<float>(), 0);
}

// What cannot be replayed, and what is said about it.
TEST_F(Capture, WhatCannotBeReplayedIsRecordedAndSaysWhy) {
  torch::Tensor x = torch::ones({4}, test_device());
  torch::Tensor kept;
  Net net = Net::make<torch::optim::SGD>(torch::optim::SGDOptions(0.1));
  const auto [image, label] = batch(0);
  struct Case {
    const char* reason;
    std::function<torch::Tensor()> body;
  };
  const Case cases[] = {
      {"the host reads a value", [&] { return x * x.sum().item<float>(); }},
      {"copies a value from the host", [&] { return x * torch::full({4}, 2.0).to(test_device()); }},
      {"is kept outside of the function", [&] { return kept = x * 2; }},
      {"draws random numbers for the host", [&] { return x * 1 + torch::rand({}).item<double>(); }},
      {"session.step(optimizer) or sluice::step(optimizer)",
       [&, image = image, label = label] {
         net.optimizer->zero_grad();
         torch::Tensor loss = F::cross_entropy(net.model->forward(image), label);
         loss.backward();
         net.optimizer->step();
         net.optimizer->zero_grad();
         return loss;
       }},
      {"changes an optimizer's options",
       [&, image = image, label = label] {
         torch::Tensor loss = net.step(image, label);
         auto& options = net.optimizer->param_groups()[0].options();
         options.set_lr(options.get_lr() * 0.9);
         return loss;
       }},
  };
  for (const Case& c : cases) {
    auto step = capture(c.body);
    testing::internal::CaptureStderr();
    for (int i = 0; i < 8; ++i) step();
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(c.reason));
    EXPECT_EQ(step.captured().replays(), 0) << c.reason;
    EXPECT_EQ(step.captured().recordings(), 8) << c.reason;
  }
}

TEST_F(Capture, AnErrorInsideLeavesTheTensorsAsTheyWere) {
  torch::Tensor x = torch::zeros({4}, test_device());
  bool fails = false;
  auto step = capture([&](torch::Tensor add) {
    if (fails) throw std::runtime_error("no");
    x.add_(add);
  });
  const torch::Tensor one = torch::ones({4}, test_device()), two = torch::ones({2, 4}, test_device());
  fails = true;
  EXPECT_THROW(step(one), std::runtime_error);
  fails = false;
  for (int i = 0; i < 6; ++i) step(one);
  EXPECT_THROW(step(two), std::exception);
  step(one);
  EXPECT_EQ(x[0].item<float>(), 7);
  EXPECT_GT(step.captured().replays(), 0);
}

TEST_F(Capture, AWrongLabelIsFoundInReplaysToo) {
  Net net = Net::make<torch::optim::SGD>(torch::optim::SGDOptions(0.1));
  auto step = capture([&](torch::Tensor image, torch::Tensor label) { return net.step(image, label); });
  const auto [image, label] = batch(0);
  for (int i = 0; i < 6; ++i) step(image, label);
  const int64_t replays = step.captured().replays();
  const torch::Tensor loss = step(image, label + 5);
  EXPECT_EQ(step.captured().replays(), replays + 1);
  EXPECT_THROW(loss.item(), Error);
}

TEST_F(Capture, SeveralProgramsInOneCall) {
  torch::Tensor x = torch::ones({4}, test_device()), y = torch::zeros({4}, test_device());
  auto step = capture([&](torch::Tensor add) {
    torch::Tensor inside = x + add;
    sync("first");
    y.add_(inside);
    x.copy_(y);
    return inside;
  });
  float a = 1, b = 0;
  const torch::Tensor one = torch::ones({4}, test_device());
  for (int i = 0; i < 8; ++i) {
    const float inside = a + 1;
    b += inside;
    a = b;
    EXPECT_EQ(step(one)[0].item<float>(), inside) << i;
  }
  EXPECT_EQ(x[0].item<float>(), a);
  EXPECT_GT(step.captured().replays(), 0) << step.captured().reason();
}

}  // namespace
}  // namespace sluice::tests
