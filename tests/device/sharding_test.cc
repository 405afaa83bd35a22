// Several virtual devices that share one model: trainings equal one device's, each device holds its block of
// what is large, and everything that reads a value sees all of it.
#include "sluice/device/sharding/shard.h"

#include "sluice/base/error.h"
#include "sluice/device/capture/capture.h"
#include "tests/device/mesh_support.h"

namespace sluice::tests {
namespace {

using testing::HasSubstr;
namespace nn = torch::nn;

constexpr int64_t kWidth = 256, kTokens = 16, kVocabulary = 512;

// Embedding, attention, MLP, tied by nothing: 2^17 elements in the tables and the MLP, fewer in the
// attention.
struct TinyDecoderImpl : nn::Module {
  nn::Embedding tokens{nullptr};
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr}, head{nullptr};
  nn::Dropout drop{nullptr};

  explicit TinyDecoderImpl(double dropout = 0) {
    tokens = register_module("tokens", nn::Embedding(kVocabulary, kWidth));
    norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    qkv = register_module("qkv", nn::Linear(kWidth, 3 * kWidth));
    out = register_module("out", nn::Linear(kWidth, kWidth));
    up = register_module("up", nn::Linear(kWidth, 2 * kWidth));
    down = register_module("down", nn::Linear(2 * kWidth, kWidth));
    head = register_module("head", nn::Linear(nn::LinearOptions(kWidth, kVocabulary).bias(false)));
    drop = register_module("drop", nn::Dropout(dropout));
  }
  torch::Tensor forward(const torch::Tensor& ids) {
    torch::Tensor x = tokens(ids);
    const auto parts = qkv(norm1(x)).chunk(3, -1);
    const auto split = [&](const torch::Tensor& t) {
      return t.reshape({t.size(0), t.size(1), 4, kWidth / 4}).transpose(1, 2);
    };
    torch::Tensor scores = split(parts[0]).matmul(split(parts[1]).transpose(-2, -1)) / 8.0;
    const torch::Tensor mask = torch::ones({ids.size(1), ids.size(1)}, x.options()).tril().eq(0);
    scores = scores.masked_fill(mask, -1e9).softmax(-1);
    x = x + drop(out(scores.matmul(split(parts[2])).transpose(1, 2).reshape(x.sizes())));
    x = x + down(torch::gelu(up(norm2(x))));
    return head(x);
  }
};
TORCH_MODULE(TinyDecoder);

struct Trained {
  std::vector<double> losses;
  std::vector<torch::Tensor> weights;
  int64_t weight_bytes = 0;  // on device 0
  int64_t state_bytes = 0;   // the same of the optimizer's two moments
  int64_t programs = 0;
};

// Trains a decoder for ten steps of Adam; each step has other tokens.
Trained train(const std::string& mesh, double dropout = 0) {
  open_mesh(mesh);
  torch::manual_seed(5);
  TinyDecoder model(dropout);
  shard(*model);
  // A large epsilon: Adam divides a gradient by itself, which makes rounding errors of small ones large.
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-3).eps(1e-3));
  Trained run;
  for (int step = 0; step < 10; ++step) {
    const torch::Tensor rows = torch::arange(8).unsqueeze(1) * 31 + step * 17;
    const torch::Tensor ids = (rows + torch::arange(kTokens + 1) * (step + 3)).remainder(kVocabulary);
    const torch::Tensor x = shard_batch(ids.slice(1, 0, kTokens)), y = shard_batch(ids.slice(1, 1));
    optimizer.zero_grad();
    const torch::Tensor loss = nn::functional::cross_entropy(model->forward(x).flatten(0, 1), y.flatten());
    loss.backward();
    optimizer.step();
    sync();
    run.losses.push_back(loss.item<double>());
    if (step == 2) run.programs = -counters().programs;
  }
  run.programs += counters().programs;
  for (const torch::Tensor& parameter : model->parameters()) {
    run.weight_bytes += bytes_on_device(parameter);
    const auto& state = static_cast<const torch::optim::AdamParamState&>(
        *optimizer.state().at(parameter.unsafeGetTensorImpl()));
    run.state_bytes += bytes_on_device(state.exp_avg()) + bytes_on_device(state.exp_avg_sq());
    EXPECT_EQ(layout_of(state.exp_avg()).str(), layout_of(parameter).str());
    EXPECT_EQ(layout_of(parameter.grad()).str(), layout_of(parameter).str());
    run.weights.push_back(parameter.detach().cpu());
  }
  return run;
}

void expect_equal_runs(const Trained& found, const Trained& wanted) {
  EXPECT_LT(wanted.losses.back(), wanted.losses.front());
  EXPECT_LT(relative_error(torch::tensor(found.losses), torch::tensor(wanted.losses)), 1e-5);
  ASSERT_EQ(found.weights.size(), wanted.weights.size());
  for (size_t i = 0; i < wanted.weights.size(); ++i)
    EXPECT_LT(relative_error(found.weights[i], wanted.weights[i]), 1e-5) << "weight " << i;
}

class Sharding : public MeshTest {};

TEST_F(Sharding, TrainingsEqualOneDevice) {
  const Trained one = train("fsdp=1");
  // tokens, qkv, up, down and head are above 2^16 elements; out has just 2^16, and the rest is small.
  constexpr int64_t kLarge = 2 * kVocabulary * kWidth + 3 * kWidth * kWidth + 4 * kWidth * kWidth;
  constexpr int64_t kSmall = kWidth * kWidth + 4 * kWidth + (3 + 1 + 2 + 1) * kWidth;
  EXPECT_EQ(one.weight_bytes, 4 * (kLarge + kSmall));
  EXPECT_EQ(one.state_bytes, 2 * one.weight_bytes);
  for (const auto& [mesh, parts] : {std::pair("fsdp=4", 4), std::pair("data=2,fsdp=2", 2)}) {
    SCOPED_TRACE(mesh);
    const Trained run = train(mesh);
    expect_equal_runs(run, one);
    EXPECT_EQ(run.weight_bytes, 4 * (kLarge / parts + kSmall));
    EXPECT_EQ(run.state_bytes, 2 * run.weight_bytes);
    EXPECT_EQ(run.programs, 0) << "programs after the third step";
  }
}

// One mask of the whole batch, on any number of devices.
TEST_F(Sharding, DropoutEqualsOneDevice) {
  const Trained one = train("fsdp=1", 0.25);
  expect_equal_runs(train("data=2,fsdp=2", 0.25), one);
}

TEST_F(Sharding, TheExampleOfThePage) {
  if (is_initialized()) shutdown();
  // [page]
  sluice::init(sluice::Mesh({{"data", 2}, {"fsdp", 2}}));  // four devices of this process
  torch::nn::Sequential model(torch::nn::Linear(64, 512), torch::nn::ReLU(), torch::nn::Linear(512, 10));
  sluice::shard(*model);  // in place of model->to(device)
  torch::optim::Adam optimizer(model->parameters(), 1e-3);
  for (int step = 0; step < 10; ++step) {
    const auto x = sluice::shard_batch(torch::randn({32, 64}));
    const auto y = sluice::shard_batch(torch::randint(10, {32}));
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(model->forward(x), y).backward();
    optimizer.step();
    sluice::sync();
  }
  // [end]
  EXPECT_EQ(mesh().str(), "data=2,fsdp=2");
}

TEST_F(Sharding, ReadingSeesTheWholeValue) {
  open_mesh("data=2,fsdp=2");
  EXPECT_EQ(mesh().str(), "data=2,fsdp=2");
  EXPECT_EQ(replicas(), 1);
  const torch::Tensor host = ramp({8, 6});
  const torch::Tensor x = shard(host, Layout({{{"fsdp"}}, {{"data"}}}));
  EXPECT_EQ(layout_of(x).str(), "[fsdp, data]");
  EXPECT_EQ(bytes_on_device(x), 8 * 6);
  EXPECT_TRUE(torch::equal(x.cpu(), host));
  EXPECT_TRUE(torch::equal(fetch(x).get().at(0), host));
  EXPECT_EQ(fetch(x).get().size(), 1u);
  EXPECT_TRUE(torch::equal(on_replica(x, 0), host));
  EXPECT_TRUE(torch::equal(x.t().slice(0, 1, 4).cpu(), host.t().slice(0, 1, 4)));
  EXPECT_EQ(x[3][2].item<float>(), host[3][2].item<float>());
  EXPECT_NEAR(x.sum().item<double>(), host.sum().item<double>(), 1e-5);
  // Results that replace nothing are whole; writes keep the layout.
  EXPECT_EQ(layout_of(x * 2).str(), "[-, -]");
  x.mul_(3);
  EXPECT_EQ(layout_of(x).str(), "[fsdp, data]");
  EXPECT_TRUE(torch::equal(x.cpu(), host * 3));
  x.copy_(host);
  EXPECT_EQ(layout_of(x).str(), "[fsdp, data]");
  x.slice(0, 2, 5).zero_();
  const torch::Tensor zeroed = host.clone();
  zeroed.slice(0, 2, 5).zero_();
  EXPECT_TRUE(torch::equal(x.cpu(), zeroed));
  // A clone shares the value until it is written to.
  const torch::Tensor copy = x.clone();
  copy.add_(1);
  EXPECT_EQ(layout_of(copy).str(), "[fsdp, data]");
  EXPECT_TRUE(torch::equal(copy.cpu(), zeroed + 1));
  EXPECT_TRUE(torch::equal(shard(x, Layout::along(2, 0, {"data"})).cpu(), zeroed));
}

TEST_F(Sharding, WhatDoesNotFitIsRefused) {
  open_mesh("fsdp=4");
  EXPECT_THAT(
      thrown([] {
        shard(torch::ones({6, 4}), Layout::along(2, 0, {"fsdp"}));
      }),
      HasSubstr("dimension 0 of [6, 4] has 6 elements, which the 4 devices along fsdp do not divide"));
  EXPECT_THAT(thrown([] { shard_batch(torch::ones({7})); }), HasSubstr("has 7 elements"));
  EXPECT_THAT(thrown([] { shard_batch(torch::ones({})); }), HasSubstr("found a scalar"));
  EXPECT_THAT(warned([] {
                EXPECT_EQ(layout_of(upload({torch::ones({7, 2})})).str(), "[-, -]");
              }),
              HasSubstr("a batch stays whole on every device"));
  EXPECT_EQ(layout_of(upload({torch::ones({8, 2})})).str(), "[fsdp, -]");
  nn::Linear odd(1023, 511);
  EXPECT_THAT(warned([&] { shard(*odd); }),
              HasSubstr("weight: fsdp=4 divides no free dimension of [511, 1023]"));
  EXPECT_THAT(thrown([&] { shard(*odd, {{"wieght", "fsdp", 0}}); }), HasSubstr("the nearest name is weight"));
  EXPECT_THAT(thrown([] {
                DeviceOptions options;
                options.devices = 3;
                open_mesh("fsdp=4", options);
              }),
              HasSubstr("the mesh fsdp=4 needs 4 devices, found 3"));
  EXPECT_THAT(thrown([] {
                DeviceOptions options;
                options.processes = 2;
                open_mesh("fsdp=4", options);
              }),
              HasSubstr("XLA's CPU plugin has no programs over several processes"));
}

// Reads and writes at places that move from step to step become dynamic slices, whose places a partitioner
// may clamp block by block.
TEST_F(Sharding, SlicesAtMovingPlaces) {
  open_mesh("data=2,fsdp=2");
  const std::vector<Layout> layouts = {
      Layout::along(2, 0, {"fsdp"}), Layout::along(2, 1, {"fsdp"}), Layout::along(2, 0, {"data", "fsdp"}),
      Layout::along(2, 1, {"data", "fsdp"}), Layout({{{"fsdp"}}, {{"data"}}})};
  for (const Layout& layout : layouts) {
    SCOPED_TRACE(layout.str());
    torch::Tensor wanted = ramp({8, 12});
    torch::Tensor x = shard(wanted, layout);
    for (const int64_t at : {0, 5, 3, 4, 1, 2}) {
      const auto step = [&](torch::Tensor& t) {
        const torch::Tensor rows = t.slice(0, at, at + 3) * 2, columns = t.slice(1, at, at + 7).sum(1);
        t.slice(0, at, at + 3).add_(1);
        t.slice(1, at + 1, at + 4).mul_(0.5);
        t.select(0, 7 - at).add_(3);
        return std::vector<torch::Tensor>{rows, columns, t};
      };
      wanted = wanted.clone();
      const std::vector<torch::Tensor> found = step(x), expected = step(wanted);
      sync();
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_LT(relative_error(found[i].cpu(), expected[i]), 1e-6) << "place " << at << ", value " << i;
    }
    EXPECT_EQ(layout_of(x).str(), layout.str());
  }
}

// Operations without a row, and captured functions, see whole values.
TEST_F(Sharding, FallbacksAndCapturedSteps) {
  open_mesh("fsdp=4");
  const torch::Tensor host = ramp({8, 4});
  const torch::Tensor x = shard(host, Layout::along(2, 0, {"fsdp"}));
  EXPECT_TRUE(torch::equal(torch::histc(x, 5, -2, 2).cpu(), torch::histc(host, 5, -2, 2)));
  auto step = capture([&](torch::Tensor added) {
    x.add_(added);
    return x.sum();
  });
  torch::Tensor wanted = host.clone();
  for (int i = 0; i < 6; ++i) {
    const torch::Tensor added = ramp({8, 4}, 0.5 + i);
    const torch::Tensor sum = step(shard_batch(added));
    wanted += added;
    EXPECT_NEAR(sum.item<double>(), wanted.sum().item<double>(), 1e-3);
  }
  EXPECT_GT(step.captured().replays(), 0);
  EXPECT_EQ(layout_of(x).str(), "[fsdp, -]");
  EXPECT_LT(relative_error(x.cpu(), wanted), 1e-6);
}

}  // namespace
}  // namespace sluice::tests
