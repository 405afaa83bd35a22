// Equal layers as loops of the program (DeviceOptions::layer_loops), in training steps of a decoder: weights
// and losses are those of the layers one after the other, and there is a loop forward and one backward.
#include "sluice/device/recompute.h"
#include "sluice/device/sharding/shard.h"
#include "tests/device/dumped_programs.h"
#include "tests/device/mesh_support.h"

namespace sluice::tests {
namespace {

using torch::Tensor;
using Tensors = std::vector<Tensor>;

constexpr int64_t kBatch = 4, kLength = 8, kWidth = 16, kHeads = 2, kWords = 20;

struct LayerImpl : torch::nn::Module {
  LayerImpl() {
    norm1 = register_module("norm1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
    norm2 = register_module("norm2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
    qkv = register_module("qkv", torch::nn::Linear(kWidth, 3 * kWidth));
    out = register_module("out", torch::nn::Linear(kWidth, kWidth));
    up = register_module("up", torch::nn::Linear(kWidth, 2 * kWidth));
    down = register_module("down", torch::nn::Linear(2 * kWidth, kWidth));
    drop1 = register_module("drop1", torch::nn::Dropout(0.1));
    drop2 = register_module("drop2", torch::nn::Dropout(0.1));
  }
  Tensor forward(Tensor x) {
    const auto parts = qkv(norm1(x)).view({x.size(0), x.size(1), 3, kHeads, kWidth / kHeads});
    const auto at = [&](int64_t i) { return parts.select(2, i).transpose(1, 2); };
    const Tensor y = at::scaled_dot_product_attention(at(0), at(1), at(2), {}, 0.0, /*is_causal=*/true);
    x = x + drop1(out(y.transpose(1, 2).reshape(x.sizes())));
    return x + drop2(down(torch::gelu(up(norm2(x)))));
  }
  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  torch::nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
  torch::nn::Dropout drop1{nullptr}, drop2{nullptr};
};
TORCH_MODULE(Layer);

struct Task {
  int64_t layers = 6;
  bool recompute = false, bf16 = false;
  int64_t frozen = 0;
  std::string mesh = {};
};

struct DecoderImpl : torch::nn::Module {
  explicit DecoderImpl(const Task& task) : task(task) {
    words = register_module("words", torch::nn::Embedding(kWords, kWidth));
    for (int64_t i = 0; i < task.layers; ++i)
      layers.push_back(register_module("layer" + std::to_string(i), Layer()));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
    head = register_module("head", torch::nn::Linear(kWidth, kWords));
    if (task.frozen > 0) words->weight.set_requires_grad(false);
    for (int64_t i = 0; i < task.frozen; ++i)
      for (Tensor& p : layers[static_cast<size_t>(i)]->parameters()) p.set_requires_grad(false);
  }
  Tensor forward(const Tensor& ids) {
    Tensor x = words(ids);
    for (Layer& layer : layers)
      x = task.recompute ? checkpoint([layer](const Tensor& in) mutable { return layer(in); }, x) : layer(x);
    return head(norm(x));
  }
  Task task;
  torch::nn::Embedding words{nullptr};
  std::vector<Layer> layers;
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Decoder);

// Returns the losses of three steps, and the weights after them.
Tensors train(const Task& task) {
  torch::manual_seed(3);
  Decoder model(task);
  if (task.mesh.empty())
    model->to(test_device());
  else
    shard(*model);
  Tensors trained;
  for (const Tensor& p : model->parameters())
    if (p.requires_grad()) trained.push_back(p);
  torch::optim::AdamW optimizer(trained, torch::optim::AdamWOptions(1e-2).eps(1e-3));
  Tensors all;
  for (int64_t step = 0; step < 3; ++step) {
    const auto ids = torch::arange(kBatch * kLength + 1, torch::kLong).add(step).mul(7).remainder(kWords);
    const auto to = [&](const Tensor& part) {
      const Tensor batch = part.clone().view({kBatch, kLength});
      return task.mesh.empty() ? batch.to(test_device()) : shard_batch(batch);
    };
    const Tensor x = to(ids.slice(0, 0, -1)), y = to(ids.slice(0, 1));
    optimizer.zero_grad();
    Tensor scores;
    {
      const Autocast autocast(test_device(), task.bf16);
      scores = model(x);
    }
    Tensor loss = torch::nn::functional::cross_entropy(scores.to(torch::kFloat).flatten(0, 1), y.flatten());
    loss.backward();
    optimizer.step();
    all.push_back(loss.detach());
    loss.reset();
    scores.reset();
    cut();
  }
  for (const Tensor& p : trained) all.push_back(p.detach());
  for (Tensor& value : all) value = value.cpu();
  return all;
}

// Trains with loops of layers and without them.
Tensors train_in(const Task& task, bool loops, DeviceOptions options = {}) {
  options.layer_loops = loops;
  if (task.mesh.empty())
    restart(options);
  else
    open_mesh(task.mesh, options);
  return train(task);
}

// The steps' values do not depend on the loops; a step's program has this number of loops.
void compare(const Task& task, int64_t loops, double tolerance = 1e-4) {
  if (on_cpu()) GTEST_SKIP() << "LibTorch's CPU has no programs";
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  DeviceOptions options;
  options.dump = folder.path();
  const Tensors found = train_in(task, true, options);
  int64_t largest = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path()))
    largest = std::max(largest, calls_of("\"stablehlo.while\"", file.path()));
  EXPECT_EQ(largest, loops);
  expect_same(found, train_in(task, false), tolerance);
}

TEST(LayerLoops, ADecoderWithDropout) { compare({}, 2); }

TEST(LayerLoops, ADecoderInHalfPrecision) { compare({.bf16 = true}, 2, 2e-2); }

TEST(LayerLoops, LayersThatAreComputedAgain) { compare({.recompute = true}, 2); }

TEST(LayerLoops, FrozenLayersHaveNoBackwardPass) { compare({.layers = 10, .frozen = 4}, 2); }

TEST(LayerLoops, LayersOverAMesh) { compare({.mesh = "fsdp=2"}, 2); }

TEST(LayerLoops, ACpuHasNoneByDefault) {
  if (on_cpu()) GTEST_SKIP() << "LibTorch's CPU has no programs";
  const DumpedPrograms programs;
  train({});
  EXPECT_EQ(programs.calls("\"stablehlo.while\""), 0);
}

}  // namespace
}  // namespace sluice::tests
