#include "tests/fuzz/models/model.h"

#include <algorithm>
#include <array>

namespace sluice::fuzz {
namespace {

namespace nn = torch::nn;
using torch::Tensor;
using Random = std::mt19937_64;
using Step = std::function<Tensor(const Tensor&)>;

int64_t pick(Random& random, int64_t count) {
  return std::uniform_int_distribution<int64_t>(0, count - 1)(random);
}

template <size_t N, typename T>
T one_of(Random& random, const T (&values)[N]) {
  return values[pick(random, static_cast<int64_t>(N))];
}

// What follows the model's own numbers is drawn by another generator, so that both stay as they are.
Random generator_of(const Plan& plan, uint64_t purpose) {
  return Random(plan.seed * 1'000'003 + static_cast<uint64_t>(plan.number) * 101 + purpose);
}

constexpr const char* kMeshes[] = {"data=2,fsdp=2",   "fsdp=4",
                                   "data=4",          "fsdp=2,tensor=2",
                                   "data=2,tensor=2", "sequence=2,fsdp=2",
                                   "fsdp=8",          "data=2,fsdp=2,tensor=2",
                                   "data=2,fsdp=4",   "data=2,sequence=2,tensor=2",
                                   "fsdp=4,tensor=2", "fsdp=2,sequence=4"};

constexpr const char* kBlocks[] = {"linear", "norm",    "batchnorm", "attention", "conv1d", "conv2d",
                                   "lstm",   "gather",  "scatter",   "select",    "roll",   "flip",
                                   "cumsum", "padding", "pooling",   "dropout",   "sort",   "slices"};

Tensor positions(const Tensor& x, int64_t length, int64_t factor) {
  return (torch::arange(length, x.options().dtype(torch::kLong)) * factor).remainder(x.size(1));
}

// Attention of every token to those before it, in heads of the width's parts.
struct AttentionImpl : nn::Module {
  AttentionImpl(int64_t width, int64_t heads) : heads_(heads) {
    qkv_ = register_module("qkv", nn::Linear(width, 3 * width));
    out_ = register_module("out", nn::Linear(width, width));
  }
  Tensor forward(const Tensor& x) {
    const auto split = [&](const Tensor& t) {
      return t.reshape({t.size(0), t.size(1), heads_, t.size(2) / heads_}).transpose(1, 2);
    };
    const auto parts = qkv_(x).chunk(3, -1);
    const Tensor mask = torch::ones({x.size(1), x.size(1)}, x.options()).tril().eq(0);
    const Tensor scores = split(parts[0]).matmul(split(parts[1]).transpose(-2, -1)) * 0.3;
    const Tensor seen = scores.masked_fill(mask, -1e9).softmax(-1).matmul(split(parts[2]));
    return x + out_(seen.transpose(1, 2).reshape(x.sizes()));
  }
  int64_t heads_;
  nn::Linear qkv_{nullptr}, out_{nullptr};
};
TORCH_MODULE(Attention);

// An LSTM's cell, token by token.
struct CellImpl : nn::Module {
  explicit CellImpl(int64_t width) { gates_ = register_module("gates", nn::Linear(2 * width, 4 * width)); }
  Tensor forward(const Tensor& x) {
    Tensor h = torch::zeros({x.size(0), x.size(2)}, x.options()), c = h;
    std::vector<Tensor> all;
    for (int64_t t = 0; t < x.size(1); ++t) {
      const auto gates = gates_(torch::cat({x.select(1, t), h}, 1)).chunk(4, 1);
      c = gates[0].sigmoid() * c + gates[1].sigmoid() * gates[2].tanh();
      h = gates[3].sigmoid() * c.tanh();
      all.push_back(h);
    }
    return torch::stack(all, 1);
  }
  nn::Linear gates_{nullptr};
};
TORCH_MODULE(Cell);

// The steps without parameters, by name. They keep the shape [batch, length, width].
Step plain_step(const Block& block) {
  const std::string& name = block.name;
  const int64_t n = block.number;
  if (name == "gather")
    return [n](const Tensor& x) {
      const Tensor places = positions(x, x.size(1), n).view({1, -1, 1}).expand(x.sizes());
      return x + x.gather(1, places);
    };
  if (name == "scatter")
    return [n](const Tensor& x) {
      const Tensor places = positions(x, x.size(1), n).view({1, -1, 1}).expand(x.sizes());
      return torch::zeros_like(x).scatter_add(1, places, x);
    };
  if (name == "select")
    return [n](const Tensor& x) { return x.index_select(1, positions(x, x.size(1), n)) * 0.5 + x; };
  if (name == "roll") return [n](const Tensor& x) { return x + x.roll({n, -n}, {1, 2}); };
  if (name == "flip") return [n](const Tensor& x) { return x - x.flip({1 + n % 2}) * 0.5; };
  if (name == "cumsum") return [n](const Tensor& x) { return x.cumsum(1 + n % 2) * 0.3; };
  if (name == "padding")
    return [n](const Tensor& x) {
      return torch::constant_pad_nd(x, {n % 3, 1, 1, n}, 0.5)
          .slice(1, n, n + x.size(1))
          .slice(2, 1, 1 + x.size(2));
    };
  if (name == "pooling")
    return [](const Tensor& x) { return x + torch::max_pool1d(x.transpose(1, 2), 3, 1, 1).transpose(1, 2); };
  if (name == "sort") return [n](const Tensor& x) { return x + std::get<0>(x.sort(1 + n % 2)); };
  return [n](const Tensor& x) {  // slices
    const int64_t middle = 1 + n % (x.size(1) - 1);
    Tensor y = x * 2;
    y = torch::cat({y.slice(1, middle), y.slice(1, 0, middle)}, 1);
    y.slice(1, 0, middle).add_(x.slice(1, x.size(1) - middle));
    return y;
  };
}

}  // namespace

std::string Plan::text() const {
  std::string text = mesh + ": batch " + std::to_string(batch) + ", length " + std::to_string(length) +
                     ", width " + std::to_string(width) + ": embedding";
  for (const Block& block : blocks) text += ", " + block.name + " " + std::to_string(block.number);
  text += adam ? "; AdamW" : "; SGD";
  return text + (by_rules ? "; rules" : "; layouts") + (batch_first ? "" : "; the input over any axes");
}

Plan make_plan(uint64_t seed, int64_t number) {
  Plan plan{seed, number};
  Random random = generator_of(plan, 1);
  plan.mesh = one_of(random, kMeshes);
  plan.batch = one_of(random, {int64_t{8}, int64_t{16}});
  plan.length = one_of(random, {int64_t{4}, int64_t{6}, int64_t{8}});
  plan.width = one_of(random, {int64_t{8}, int64_t{16}});
  plan.adam = pick(random, 2) == 0;
  plan.by_rules = pick(random, 2) == 0;
  plan.batch_first = pick(random, 3) != 0;
  for (int64_t count = 1 + pick(random, 5); count > 0; --count)
    plan.blocks.push_back({one_of(random, kBlocks), 1 + pick(random, 3)});
  return plan;
}

ModelImpl::ModelImpl(const Plan& plan) {
  embedding_ = register_module("embedding", nn::Embedding(kWords, plan.width));
  for (size_t i = 0; i < plan.blocks.size(); ++i) add(i, plan.blocks[i], plan);
  head_ = register_module("head", nn::Linear(plan.width, kClasses));
}

void ModelImpl::add(size_t index, const Block& block, const Plan& plan) {
  const std::string name = block.name + std::to_string(index);
  const int64_t width = plan.width;
  if (block.name == "linear") {
    auto up = register_module(name + "_up", nn::Linear(width, block.number * width));
    auto down = register_module(name + "_down", nn::Linear(block.number * width, width));
    steps_.emplace_back([=](const Tensor& x) { return x + down->forward(torch::gelu(up->forward(x))); });
  } else if (block.name == "norm") {
    auto norm = register_module(name, nn::LayerNorm(nn::LayerNormOptions({width})));
    steps_.emplace_back([=](const Tensor& x) { return norm->forward(x); });
  } else if (block.name == "batchnorm") {
    auto norm = register_module(name, nn::BatchNorm1d(width));
    steps_.emplace_back([=](const Tensor& x) { return norm->forward(x.transpose(1, 2)).transpose(1, 2); });
  } else if (block.name == "attention") {
    auto attention = register_module(name, Attention(width, int64_t{1} << block.number));
    steps_.emplace_back([=](const Tensor& x) { return attention->forward(x); });
  } else if (block.name == "conv1d") {
    auto conv = register_module(name, nn::Conv1d(nn::Conv1dOptions(width, width, 3).padding(1)));
    steps_.emplace_back(
        [=](const Tensor& x) { return x + conv->forward(x.transpose(1, 2)).transpose(1, 2).tanh(); });
  } else if (block.name == "conv2d") {
    auto conv = register_module(name, nn::Conv2d(nn::Conv2dOptions(1, 4, 3).padding(1)));
    steps_.emplace_back([=](const Tensor& x) { return conv->forward(x.unsqueeze(1)).relu().mean(1) + x; });
  } else if (block.name == "lstm") {
    auto cell = register_module(name, Cell(width));
    steps_.emplace_back([=](const Tensor& x) { return cell->forward(x); });
  } else if (block.name == "dropout") {
    auto drop = register_module(name, nn::Dropout(0.2));
    steps_.emplace_back([=](const Tensor& x) { return drop->forward(x); });
  } else {
    steps_.push_back(plain_step(block));
  }
}

Tensor ModelImpl::forward(const Tensor& tokens) {
  Tensor x = embedding_(tokens);
  for (const auto& step : steps_) x = step(x);
  return head_(x);
}

namespace {

// Each axis over any dimension that it divides, or over none.
Layout random_layout(Random& random, const Mesh& mesh, c10::IntArrayRef sizes) {
  std::vector<LayoutDim> dims(sizes.size());
  std::vector<int64_t> left = sizes.vec();
  for (const MeshAxis& axis : mesh.axes()) {
    const auto d = static_cast<size_t>(pick(random, static_cast<int64_t>(sizes.size()) + 1));
    if (d == sizes.size() || left[d] % axis.size != 0) continue;
    left[d] /= axis.size;
    dims[d].axes.push_back(axis.name);
    dims[d].priority = static_cast<int>(pick(random, 2));
  }
  return Layout(dims);
}

}  // namespace

std::vector<Layout> layouts_of(const Plan& plan, const ModelImpl& model) {
  Random random = generator_of(plan, 2);
  const Mesh mesh = Mesh::parse(plan.mesh);
  std::vector<Layout> layouts;
  for (const Tensor& parameter : model.parameters())
    layouts.push_back(random_layout(random, mesh, parameter.sizes()));
  return layouts;
}

std::vector<ShardRule> rules_of(const Plan& plan, const ModelImpl& model) {
  Random random = generator_of(plan, 2);
  const Mesh mesh = Mesh::parse(plan.mesh);
  std::vector<ShardRule> rules;
  for (const auto& item : model.named_parameters()) {
    const MeshAxis& axis =
        mesh.axes()[static_cast<size_t>(pick(random, static_cast<int64_t>(mesh.axes().size())))];
    const int64_t dim = pick(random, item.value().dim());
    if (pick(random, 3) != 0 && item.value().size(dim) % axis.size == 0)
      rules.push_back({item.key(), axis.name, dim});
  }
  return rules;
}

Layout layout_of_input(const Plan& plan) {
  if (plan.batch_first) return batch_layout(2);
  Random random = generator_of(plan, 3);
  return random_layout(random, Mesh::parse(plan.mesh), {plan.batch, plan.length});
}

}  // namespace sluice::fuzz
