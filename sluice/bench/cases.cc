#include "sluice/bench/cases.h"

#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/bench/networks.h"
#include "sluice/device/capture/capture.h"
#include "sluice/device/device.h"
#include "sluice/models/language/language.h"
#include "sluice/replica/collectives.h"
#include "sluice/session/session.h"
#include "sluice/train/language/token_loss.h"

namespace sluice::bench {
namespace {

using models::ModelPtr;

std::function<torch::Tensor(int64_t)> random_images(int64_t side) {
  return [side](int64_t batch) { return torch::randn({batch, 3, side, side}); };
}

Case resnet50(int64_t side) {
  return {.name = "resnet50",
          .images = true,
          .model = [] { return models::resnet50(1000); },
          .input = random_images(side),
          .classes = 1000};
}

// ResNet-18 for 32×32 images: a 3×3 stem, no pooling before the stages.
Case resnet18_cifar(int64_t side) {
  return {.name = "resnet18_cifar",
          .images = true,
          .model = [] { return models::resnet({.small_images = true, .classes = 10}); },
          .input = random_images(side)};
}

// An MLP (784-1024-1024-10) on rows as long as MNIST's images.
Case mlp() {
  return {.name = "mlp",
          .model = [] { return models::create("mlp", {.classes = 10, .channels = 1, .image_size = 28}); },
          .input =
              [](int64_t batch) {
                return torch::randn({batch, 784});
              },
          .only_products = true};
}

// A classifier of sequences of 128 tokens. It has no dropout, so that both sides compute the same.
Case token_transformer(const char* name, int64_t layers, int64_t width, int64_t heads, bool recompute) {
  const models::TransformerOptions options = {.classes = 10,
                                              .layers = layers,
                                              .width = width,
                                              .heads = heads,
                                              .feedforward = 4 * width,
                                              .dropout = 0,
                                              .vocabulary = 1000,
                                              .max_length = 128,
                                              .recompute = recompute};
  return {.name = name,
          .adam = true,
          .model = [options] { return models::transformer(options); },
          .input =
              [](int64_t batch) {
                return torch::randint(0, 1000, {batch, 128});
              }};
}

// Takes ids [batch, length + 1] and returns the mean loss of predicting each next token.
class NextTokenLoss : public models::Model {
 public:
  explicit NextTokenLoss(const models::LanguageOptions& options)
      : model_(register_module("model", models::language_model(options))) {}
  torch::Tensor forward(torch::Tensor ids) override {
    const torch::Tensor states = model_->states({.ids = ids.slice(1, 0, -1)});
    const torch::Tensor targets = ids.slice(1, 1).flatten();
    return train::token_loss(*model_, states.flatten(0, 1), targets).sum / targets.numel();
  }

 private:
  models::LanguageModelPtr model_;
};

// A language model without dropout, so that both sides compute the same.
Case language(const std::string& name, int64_t length, bool recompute) {
  models::LanguageOptions options = models::language_preset(name);
  options.dropout = options.embedding_dropout = options.attention_dropout = 0;
  options.positions = std::max(options.positions, length);
  options.recompute = recompute;
  return {.name = name,
          .adam = true,
          .model = [options] { return std::make_shared<NextTokenLoss>(options); },
          .input =
              [length, tokens = options.vocabulary](int64_t batch) {
                return torch::randint(0, tokens, {batch, length + 1});
              },
          .gives_loss = true,
          .of_tokens = true};
}

// An LSTM of two layers that predicts the next of 10,000 tokens.
Case lstm(int64_t length) {
  const LstmOptions options;
  return {.name = "lstm",
          .adam = true,
          .model = [options] { return next_token_lstm(options); },
          .input =
              [length, options](int64_t batch) {
                return torch::randint(0, options.vocabulary, {batch, length + 1});
              },
          .gives_loss = true,
          .of_tokens = true};
}

// Both nets of a DCGAN for images of 64×64, updated in one step.
Case gan() {
  return {.name = "dcgan", .adam = true, .model = dcgan, .input = random_images(64), .gives_loss = true};
}

// ViT-B/16: a large encoder of patches of 16×16 pixels, without dropout, so that both sides compute the same.
Case vit(int64_t side, bool recompute) {
  const models::TransformerOptions options = {.classes = 1000,
                                              .layers = 12,
                                              .width = 768,
                                              .heads = 12,
                                              .feedforward = 3072,
                                              .dropout = 0,
                                              .image_size = side,
                                              .patch = 16,
                                              .recompute = recompute};
  return {.name = "vit_b_16",
          .adam = true,
          .images = true,
          .model = [options] { return models::transformer(options); },
          .input = random_images(side),
          .classes = 1000};
}

}  // namespace

std::vector<std::string> case_names() {
  std::vector<std::string> names = {"mlp",           "resnet50", "resnet18_cifar", "transformer6",
                                    "transformer12", "vit_b_16", "lstm",           "dcgan"};
  for (const std::string& name : models::names()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  for (const std::string& name : models::language_presets())
    if (models::language_preset(name).type != "roberta") names.push_back(name);
  return names;
}

Case find_case(const std::string& name, const Sizes& sizes, bool recompute) {
  const int64_t image_size = sizes.image_size;
  const auto presets = models::language_presets();
  if (std::find(presets.begin(), presets.end(), name) != presets.end() &&
      models::language_preset(name).type != "roberta")
    return language(name, sizes.length, recompute);
  if (name == "transformer6") return token_transformer("transformer6", 6, 256, 8, recompute);
  if (name == "transformer12") return token_transformer("transformer12", 12, 768, 12, recompute);
  if (name == "vit_b_16") return vit(image_size, recompute);
  if (recompute && (name == "lstm" || name == "dcgan"))
    throw_error(Code::kInvalidArgument,
                base::str("model ", name, " has no layers that could be computed again (recompute)"));
  if (name == "lstm") return lstm(sizes.length);
  if (name == "dcgan") return gan();
  if (name == "mlp" && sizes.mlp_of_rows && !recompute) return mlp();
  if (name == "resnet50" && !recompute) return resnet50(image_size);
  if (name == "resnet18_cifar" && !recompute) return resnet18_cifar(image_size);
  const models::Shape shape{10, 3, image_size, recompute};
  models::create(name, shape);  // throws for an unknown name
  return {.name = name,
          .images = true,
          .model = [name, shape] { return models::create(name, shape); },
          .input = random_images(image_size)};
}

std::unique_ptr<torch::optim::Optimizer> case_optimizer(const Case& bench, const models::Model& model) {
  if (bench.adam)
    return std::make_unique<torch::optim::Adam>(model.parameters(), torch::optim::AdamOptions(1e-3));
  return std::make_unique<torch::optim::SGD>(model.parameters(),
                                             torch::optim::SGDOptions(1e-2).momentum(0.9));
}

torch::Tensor case_loss(const Case& bench, models::Model& model, const torch::Tensor& input,
                        const torch::Tensor& target) {
  const torch::Tensor output = model.forward(input);
  return bench.gives_loss ? output : torch::nn::functional::cross_entropy(output, target);
}

Step::Step(const Case& bench, int64_t batch, torch::Device device, torch::MemoryFormat format, bool bf16)
    : bench_(bench), bf16_(bf16) {
  torch::manual_seed(1);
  model_ = bench.model();
  const int parts = device.type() == torch::kXLA ? replicas() : 1;
  input_ = bench.input(batch * parts);
  target_ = torch::randint(0, bench.classes, {batch * parts});
  target_ = parts > 1 ? sluice::split(target_) : target_.to(device);
  if (bench.images) {
    input_ = input_.contiguous(format);
    for (torch::Tensor& p : model_->parameters()) {
      if (p.dim() == 4) p.set_data(p.contiguous(format));
    }
  }
  input_ = parts > 1 ? sluice::split(input_) : input_.to(device);
  model_->to(device);
  optimizer_ = case_optimizer(bench, *model_);
  create_state(*optimizer_);
  std::vector<std::pair<std::string, torch::Tensor>> named;
  for (const auto& item : model_->named_parameters()) named.emplace_back(item.key(), item.value());
  if (device.type() == torch::kXLA) name_tensors(named);
}

void Step::record() { loss_ = run(); }

torch::Tensor Step::run() {
  optimizer_->zero_grad();
  torch::Tensor loss;
  {
    Autocast autocast(input_.device(), bf16_);
    loss = case_loss(bench_, *model_, input_, target_);
  }
  loss.backward();
  replica::reduce_gradients(model_->parameters());
  sluice::step(*optimizer_);
  optimizer_->zero_grad();  // kept gradients would be results of the program, written to memory
  return loss;
}

double Step::loss() const { return sluice::mean(loss_.detach()).item<double>(); }

Products::Products(const Case& bench, int64_t batch, torch::Device device) {
  for (const torch::Tensor& parameter : bench.model()->parameters()) {
    if (parameter.dim() != 2) continue;
    weights_.push_back(parameter.detach().to(device));
    inputs_.push_back(torch::randn({batch, parameter.size(1)}).to(device));
    gradients_.push_back(torch::randn({batch, parameter.size(0)}).to(device));
  }
}

void Products::record() {
  results_.clear();
  for (size_t i = 0; i < weights_.size(); ++i) {
    results_.push_back(torch::mm(inputs_[i], weights_[i].t()));
    results_.push_back(torch::mm(gradients_[i].t(), inputs_[i]));
    if (i > 0) results_.push_back(torch::mm(gradients_[i], weights_[i]));
  }
}

}  // namespace sluice::bench
