// sluice::checkpoint: the values and gradients of the same model without it.
#include "sluice/device/recompute.h"

#include "sluice/device/capture/capture.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

// A linear layer in a layer, with dropout between.
struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(int64_t width) : norm(torch::nn::LayerNormOptions({width})) {
    inner->push_back(torch::nn::Linear(width, 2 * width));
    inner->push_back(torch::nn::GELU());
    inner->push_back(torch::nn::Dropout(0.5));
    inner->push_back(torch::nn::Linear(2 * width, width));
    register_module("norm", norm);
    register_module("inner", inner);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    ++calls;
    const torch::Tensor y = inner->forward(norm(x));
    types.push_back(y.scalar_type());
    return x + y;
  }
  torch::nn::LayerNorm norm;
  torch::nn::Sequential inner;
  int calls = 0;
  std::vector<torch::ScalarType> types;
};
TORCH_MODULE(Block);

struct Net {
  explicit Net(torch::Device device) {
    torch::manual_seed(1);
    for (int i = 0; i < 3; ++i) {
      blocks.emplace_back(8);
      blocks.back()->to(device);
      for (const auto& parameter : blocks.back()->parameters()) parameters.push_back(parameter);
    }
  }
  torch::Tensor forward(torch::Tensor x, bool recomputed) {
    for (Block& block : blocks) {
      if (recomputed)
        x = checkpoint([block](const torch::Tensor& in) mutable { return block->forward(in); }, x);
      else
        x = block->forward(x);
    }
    return x;
  }
  std::vector<Block> blocks;
  std::vector<torch::Tensor> parameters;
};

// The loss, the input's gradient and those of the parameters.
std::vector<torch::Tensor> results_of(Net& net, bool recomputed, bool input_has_gradient, bool bf16) {
  const torch::Tensor x = ramp({4, 8}).to(test_device()).requires_grad_(input_has_gradient);
  torch::manual_seed(7);
  torch::Tensor loss;
  {
    const Autocast autocast(test_device(), bf16);
    loss = net.forward(x, recomputed).to(torch::kFloat).square().mean();
  }
  loss.backward();
  std::vector<torch::Tensor> results = {loss.detach()};
  if (input_has_gradient) results.push_back(x.grad());
  for (torch::Tensor& parameter : net.parameters) {
    results.push_back(parameter.grad().clone());
    parameter.mutable_grad().reset();
  }
  // The next random number, which the second call must not have moved.
  results.push_back(torch::rand({1}));
  cut();
  return results;
}

TEST(Recompute, GradientsAreThoseWithoutIt) {
  Net net(test_device());
  for (const bool input_has_gradient : {true, false})
    for (const bool bf16 : {false, true}) {
      const auto expected = results_of(net, false, input_has_gradient, bf16);
      const auto found = results_of(net, true, input_has_gradient, bf16);
      expect_same(found, expected, on_cpu() ? 0 : bf16 ? 1e-3 : 1e-6);
    }
  EXPECT_EQ(net.blocks[1]->calls, 4 * 3);
  // Under autocast both calls are in bf16.
  const auto& types = net.blocks[1]->types;
  EXPECT_EQ(std::count(types.begin(), types.end(), torch::kBFloat16), 2 * 3);
}

TEST(Recompute, TrainsWithoutRecompiling) {
  std::vector<torch::Tensor> losses[2];
  for (const bool recomputed : {false, true}) {
    Net net(test_device());
    torch::optim::Adam optimizer(net.parameters, 1e-2);
    int64_t programs = 0;
    for (int step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      torch::manual_seed(step);
      const torch::Tensor loss = net.forward(ramp({4, 8}).to(test_device()), recomputed).square().mean();
      loss.backward();
      optimizer.step();
      cut();
      losses[recomputed].push_back(loss);
      if (step == 1 && !on_cpu()) programs = counters().programs;
    }
    if (!on_cpu()) {
      EXPECT_EQ(counters().programs, programs);
      EXPECT_EQ(counters().fallbacks, 0);
    }
  }
  expect_same(losses[1], losses[0], on_cpu() ? 0 : 1e-6);
}

TEST(Recompute, TakesAndGivesSeveralTensorsOfAnyType) {
  const torch::Tensor a = ramp({3, 4}).to(test_device()).requires_grad_();
  const torch::Tensor b = ramp({4}, 0.5).to(test_device()).requires_grad_();
  const torch::Tensor rows = torch::tensor({2, 0, 1}).to(test_device());
  const auto function = [](const std::vector<torch::Tensor>& in) -> std::vector<torch::Tensor> {
    return {in[0].index_select(0, in[2]) * in[1], in[2] + 1, in[1].exp()};
  };
  function({a, b, rows})[0].square().sum().backward();
  const std::vector<torch::Tensor> expected = {a.grad().clone(), b.grad().clone()};
  a.mutable_grad().reset();
  b.mutable_grad().reset();
  const auto found = checkpoint(function, {a, b, rows});
  EXPECT_TRUE(found[0].requires_grad());
  EXPECT_FALSE(found[1].requires_grad());
  found[0].square().sum().backward();  // nothing of the third one
  expect_same({a.grad(), b.grad()}, expected, 1e-6);
}

TEST(Recompute, MayStandInAnother) {
  const torch::Tensor x = ramp({5}).to(test_device()).requires_grad_();
  int calls = 0;
  const auto inner = [&](const torch::Tensor& in) {
    ++calls;
    return in.sin();
  };
  const auto outer = [&](const torch::Tensor& in) { return checkpoint(inner, in * 2) + in; };
  checkpoint(outer, x).sum().backward();
  EXPECT_EQ(calls, 3);
  expect_same(x.grad(), 2 * (2 * x.detach()).cos() + 1, 1e-6);
}

TEST(Recompute, IsAPlainCallWithoutGradients) {
  int calls = 0;
  const torch::NoGradGuard no_grad;
  const torch::Tensor y = checkpoint(
      [&](const torch::Tensor& in) {
        ++calls;
        return in + 1;
      },
      ramp({3}).to(test_device()));
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(calls, 1);
}

TEST(Recompute, RefusesWhatItCannotDo) {
  const torch::Tensor x = ramp({3}).to(test_device()).requires_grad_();
  const auto square = [](const torch::Tensor& in) { return in.square(); };
  EXPECT_THAT(thrown([&] {
                torch::autograd::grad({checkpoint(square, x).sum()}, {x}, {}, true, /*create_graph=*/true);
              }),
              testing::HasSubstr("no gradients of gradients"));
  int calls = 0;
  const auto fails = [&](const torch::Tensor& in) {
    if (++calls == 2) throw std::runtime_error("no more");
    return in.square();
  };
  const torch::Tensor y = checkpoint(fails, x).sum();
  EXPECT_THAT(thrown([&] { y.backward(); }), testing::HasSubstr("no more"));
}

// The second call would draw other numbers in a replay.
TEST(Recompute, IsNotReplayedWithRandomNumbers) {
  if (on_cpu()) GTEST_SKIP() << "nothing is replayed there";
  torch::Tensor weight = ramp({4}).to(test_device()).requires_grad_();
  for (const bool random : {false, true}) {
    auto step = capture([&](const torch::Tensor& x) {
      const torch::Tensor loss = checkpoint(
                                     [&](const torch::Tensor& in) {
                                       return random ? torch::dropout(in * weight, 0.5, true) : in * weight;
                                     },
                                     x)
                                     .sum();
      loss.backward();
      torch::Tensor gradient = weight.grad().clone();
      weight.mutable_grad().reset();
      return gradient;
    });
    const torch::Tensor x = ramp({4}).to(test_device());
    for (int i = 0; i < 6; ++i) step(x);
    EXPECT_EQ(step.captured().replays() > 0, !random) << step.captured().reason();
  }
}

}  // namespace
}  // namespace sluice::tests
