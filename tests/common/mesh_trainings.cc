#include "tests/common/mesh_trainings.h"

#include <functional>
#include <memory>
#include <utility>

#include "sluice/device/device.h"
#include "sluice/device/sharding/shard.h"

namespace sluice::tests {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using torch::Tensor;

constexpr int64_t kRows = 16, kTokens = 8, kWords = 32, kWidth = 32, kClasses = 8;
constexpr double kDropout = 0.1;

// Returns all rows of a batch on the device, of which this process gives its part.
Tensor rows_of(const Tensor& all) {
  const int64_t rows = all.size(0) / batch_parts();
  return shard_batch(all.narrow(0, batch_part() * rows, rows));
}

// Smooth numbers that differ from step to step.
Tensor waves(std::vector<int64_t> sizes, int step) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return torch::sin(torch::arange(count, torch::kDouble) * 0.37 + step).reshape(sizes);
}
Tensor words(int step, int64_t length) {
  const Tensor rows = torch::arange(kRows).unsqueeze(1) * 7 + step * 5;
  return (rows + torch::arange(length) * (step % 3 + 1)).remainder(kWords);
}
Tensor classes(int step) { return (torch::arange(kRows) * 3 + step).remainder(kClasses); }

Tensor loss_of(const Tensor& scores, const Tensor& wanted) {
  return F::cross_entropy(scores.flatten(0, -2), wanted.flatten());
}

// Attention of every token to those before it, and a feed-forward layer, each with dropout.
struct BlockImpl : nn::Module {
  static constexpr int64_t kHeads = 4;
  nn::LayerNorm norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  nn::LayerNorm norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  nn::Linear qkv = register_module("qkv", nn::Linear(kWidth, 3 * kWidth));
  nn::Linear out = register_module("out", nn::Linear(kWidth, kWidth));
  nn::Linear up = register_module("up", nn::Linear(kWidth, 2 * kWidth));
  nn::Linear down = register_module("down", nn::Linear(2 * kWidth, kWidth));
  nn::Dropout drop = register_module("drop", nn::Dropout(kDropout));

  Tensor forward(Tensor x) {
    const auto split = [](const Tensor& t) {
      return t.reshape({t.size(0), t.size(1), kHeads, kWidth / kHeads}).transpose(1, 2);
    };
    const auto parts = qkv(norm1(x)).chunk(3, -1);
    const Tensor later = torch::ones({x.size(1), x.size(1)}, x.options()).tril().eq(0);
    const Tensor scores = split(parts[0]).matmul(split(parts[1]).transpose(-2, -1)) * 0.35;
    const Tensor seen = drop(scores.masked_fill(later, -1e9).softmax(-1)).matmul(split(parts[2]));
    x = x + drop(out(seen.transpose(1, 2).reshape(x.sizes())));
    return x + drop(down(torch::gelu(up(norm2(x)))));
  }
};
TORCH_MODULE(Block);

struct DecoderImpl : nn::Module {
  nn::Embedding tokens = register_module("tokens", nn::Embedding(kWords, kWidth));
  Block first = register_module("first", Block()), second = register_module("second", Block());
  nn::Linear head = register_module("head", nn::Linear(kWidth, kWords));
  Tensor forward(const Tensor& ids) { return head(second(first(tokens(ids)))); }
};
TORCH_MODULE(Decoder);

struct ResidualImpl : nn::Module {
  ResidualImpl(int64_t in, int64_t out, int64_t stride)
      : conv1(register_module(
            "conv1", nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false)))),
        conv2(register_module("conv2", nn::Conv2d(nn::Conv2dOptions(out, out, 3).padding(1).bias(false)))),
        shortcut(register_module("shortcut",
                                 nn::Conv2d(nn::Conv2dOptions(in, out, 1).stride(stride).bias(false)))),
        norm1(register_module("norm1", nn::BatchNorm2d(out))),
        norm2(register_module("norm2", nn::BatchNorm2d(out))) {}
  Tensor forward(const Tensor& x) {
    return torch::relu(norm2(conv2(torch::relu(norm1(conv1(x))))) + shortcut(x));
  }
  nn::Conv2d conv1, conv2, shortcut;
  nn::BatchNorm2d norm1, norm2;
};
TORCH_MODULE(Residual);

struct LstmImpl : nn::Module {
  nn::Embedding tokens = register_module("tokens", nn::Embedding(kWords, kWidth));
  nn::LSTM lstm = register_module(
      "lstm", nn::LSTM(nn::LSTMOptions(kWidth, kWidth).num_layers(2).batch_first(true).dropout(kDropout)));
  nn::Linear head = register_module("head", nn::Linear(kWidth, kWords));
  Tensor forward(const Tensor& ids) { return head(std::get<0>(lstm(tokens(ids)))); }
};
TORCH_MODULE(Lstm);

// Messages go along edges between tokens: each edge gathers its source, and its target adds them up.
struct ScatterImpl : nn::Module {
  nn::Embedding tokens = register_module("tokens", nn::Embedding(kWords, kWidth));
  nn::Linear message = register_module("message", nn::Linear(kWidth, 2 * kWidth));
  nn::Linear update = register_module("update", nn::Linear(2 * kWidth, kWidth));
  nn::Linear head = register_module("head", nn::Linear(kWidth, kWords));
  nn::Dropout drop = register_module("drop", nn::Dropout(kDropout));
  Tensor forward(const Tensor& ids) {
    Tensor x = tokens(ids);
    const Tensor from = ((ids * 5 + 3) % kTokens).unsqueeze(-1).expand({ids.size(0), kTokens, 2 * kWidth});
    const Tensor to = ((ids * 3 + 1) % kTokens).unsqueeze(-1).expand({ids.size(0), kTokens, 2 * kWidth});
    for (int round = 0; round < 2; ++round) {
      const Tensor sent = torch::gelu(message(x)).gather(1, from);
      x = x + drop(update(torch::zeros_like(sent).scatter_add(1, to, sent)));
    }
    const Tensor order = torch::arange(kTokens - 1, -1, -1, ids.options());
    return head(x + x.index_select(1, order));
  }
};
TORCH_MODULE(Scatter);

// Weights lie over fsdp along the larger one of their first two dimensions that it divides, and over tensor
// along the other one.
Layout layout_of_parameter(const Mesh& over, const Tensor& tensor) {
  std::vector<LayoutDim> dims(static_cast<size_t>(tensor.dim()));
  if (tensor.dim() < 2) return Layout(dims);
  const size_t large = tensor.size(1) > tensor.size(0) ? 1 : 0;
  for (const auto& [axis, first] : {std::pair("fsdp", large), std::pair("tensor", 1 - large)})
    for (const size_t d : {first, 1 - first})
      if (dims[d].axes.empty() && tensor.size(static_cast<int64_t>(d)) % over.size(axis) == 0) {
        dims[d] = {{axis}, 1};
        break;
      }
  return Layout(dims);
}

// A module on the device with its optimizer.
struct Trained {
  std::string name;
  std::shared_ptr<nn::Module> module;
  std::unique_ptr<torch::optim::AdamW> optimizer;

  Trained(std::string title, std::shared_ptr<nn::Module> made)
      : name(std::move(title)), module(std::move(made)) {
    const Mesh over = mesh();
    for (Tensor& parameter : module->parameters())
      parameter.set_data(shard(parameter.data(), layout_of_parameter(over, parameter)));
    for (Tensor& buffer : module->buffers())
      buffer.set_data(shard(buffer, Layout::replicated(static_cast<size_t>(buffer.dim()))));
    // A large epsilon: AdamW divides a gradient by itself, which makes rounding errors of small ones large.
    optimizer = std::make_unique<torch::optim::AdamW>(
        module->parameters(), torch::optim::AdamWOptions(kMeshLearningRate).eps(1e-3));
  }
  void step(const Tensor& loss) {
    loss.backward();
    optimizer->step();
    optimizer->zero_grad();
  }
};

// Trainings of one or two modules; take(step) does one step and returns the losses.
struct Task {
  std::vector<std::shared_ptr<Trained>> trained;
  std::function<std::vector<Tensor>(int)> take;
};

template <typename Model>
Task task_of(Model model, std::function<std::pair<Tensor, Tensor>(int)> batch) {
  auto trained = std::make_shared<Trained>("model", model.ptr());
  return {{trained}, [=](int step) mutable {
            const auto [x, y] = batch(step);
            const Tensor loss = loss_of(model->forward(rows_of(x)), rows_of(y));
            trained->step(loss);
            return std::vector<Tensor>{loss.detach()};
          }};
}

std::pair<Tensor, Tensor> next_words(int step) {
  const Tensor all = words(step, kTokens + 1);
  return {all.narrow(1, 0, kTokens), all.narrow(1, 1, kTokens)};
}

Task residual_net() {
  nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1).bias(false)), nn::BatchNorm2d(8),
                       nn::ReLU(), Residual(8, 8, 1), Residual(8, 16, 2), nn::AdaptiveAvgPool2d(1),
                       nn::Flatten(), nn::Dropout(kDropout), nn::Linear(16, kClasses));
  model->to(torch::kDouble);
  return task_of(model, [](int step) { return std::pair(waves({kRows, 3, 8, 8}, step), classes(step)); });
}

Task gan() {
  nn::Sequential generator(
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 16, 4).bias(false)), nn::BatchNorm2d(16), nn::ReLU(),
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(16, 8, 4).stride(2).padding(1)), nn::Tanh());
  nn::Sequential critic(nn::Conv2d(nn::Conv2dOptions(8, 16, 4).stride(2).padding(1)), nn::BatchNorm2d(16),
                        nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)), nn::Dropout(kDropout),
                        nn::Conv2d(nn::Conv2dOptions(16, 1, 4)), nn::Flatten());
  generator->to(torch::kDouble);
  critic->to(torch::kDouble);
  auto maker = std::make_shared<Trained>("generator", generator.ptr());
  auto judge = std::make_shared<Trained>("critic", critic.ptr());
  return {{maker, judge}, [=](int step) mutable {
            const Tensor made = generator->forward(rows_of(waves({kRows, 8, 1, 1}, step)));
            const Tensor real = critic->forward(rows_of(waves({kRows, 8, 8, 8}, step + 100)));
            const Tensor judged =
                F::softplus(-real).mean() + F::softplus(critic->forward(made.detach())).mean();
            judge->step(judged);
            const Tensor wished = F::softplus(-critic->forward(made)).mean();
            maker->step(wished);
            judge->optimizer->zero_grad();
            return std::vector<Tensor>{judged.detach(), wished.detach()};
          }};
}

Task task_named(const std::string& name) {
  static const std::map<std::string, std::function<Task()>> all = {
      {"decoder", [] { return task_of(Decoder(), next_words); }},
      {"resnet", residual_net},
      {"lstm", [] { return task_of(Lstm(), next_words); }},
      {"scatter", [] { return task_of(Scatter(), next_words); }},
      {"gan", gan}};
  return all.at(name)();
}

void read(const Trained& trained, MeshTrained& into) {
  for (const auto& item : trained.module->named_parameters()) {
    const std::string name = trained.name + '.' + item.key();
    const auto& state = static_cast<const torch::optim::AdamWParamState&>(
        *trained.optimizer->state().at(item.value().unsafeGetTensorImpl()));
    into.values[name] = item.value().detach().cpu();
    into.values[name + ".first_moment"] = state.exp_avg().cpu();
    into.values[name + ".second_moment"] = state.exp_avg_sq().cpu();
    if (!mesh().empty() && !layout_of(item.value()).is_replicated(mesh())) ++into.in_blocks;
  }
  for (const auto& item : trained.module->named_buffers())
    into.values[trained.name + '.' + item.key()] = item.value().cpu();
}

}  // namespace

MeshTrained train_on_mesh(const std::string& name) {
  torch::manual_seed(5);
  Task task = task_named(name);
  MeshTrained run;
  for (int step = 0; step < kMeshSteps; ++step) {
    const std::vector<Tensor> losses = task.take(step);
    sync();
    for (const Tensor& loss : losses) run.losses.push_back(loss.item<double>());
    if (step == 9) run.late_programs = -counters().programs;
  }
  run.late_programs += counters().programs;
  for (const auto& trained : task.trained) read(*trained, run);
  return run;
}

double max_error_on_mesh(const std::string& training) {
  return training == "resnet" || training == "gan" ? 1e-9 : 1e-5;
}

double error_on_mesh(const std::string& name, const Tensor& found, const Tensor& wanted) {
  const bool squares = name.find("second_moment") != std::string::npos;
  const double least = squares ? kMeshLearningRate * kMeshLearningRate : kMeshLearningRate;
  const Tensor a = found.to(torch::kDouble), b = wanted.to(torch::kDouble);
  return ((a - b).abs().max() / b.abs().max().clamp_min(least)).item<double>();
}

}  // namespace sluice::tests
