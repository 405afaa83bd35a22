#include "tests/device/tasks.h"

namespace sluice::tests {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

torch::Tensor noise(const std::vector<int64_t>& sizes, uint64_t seed) {
  return torch::randn(sizes, at::detail::createCPUGenerator(seed), torch::kFloat);
}

torch::Tensor numbers(int64_t count, int64_t classes, uint64_t seed) {
  return torch::randint(0, classes, {count}, at::detail::createCPUGenerator(seed), torch::kLong);
}

// The parameters depend on the seed and their order alone.
void initialise(nn::Module& module, uint64_t seed) {
  torch::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) {
    double scale = parameter.dim() > 1 ? 1 / std::sqrt(static_cast<double>(parameter[0].numel())) : 0.1;
    double shift = parameter.dim() > 1 ? 0 : 0.3;
    parameter.copy_(noise(parameter.sizes().vec(), seed++) * scale + shift);
  }
}

// What most tasks share: a classifier, cross-entropy, one optimizer.
template <typename Optimizer, typename Model, typename Options>
Training classify(Model model, torch::Device device, std::vector<int64_t> shape, int64_t classes,
                  Options options) {
  struct Owner {
    Model model;
    std::unique_ptr<Optimizer> optimizer;
  };
  auto owner = std::make_shared<Owner>(Owner{model, nullptr});
  nn::Module& module = *model;
  initialise(module, 7);
  module.to(device);
  owner->optimizer = std::make_unique<Optimizer>(module.parameters(), options);
  Training training;
  training.parameters = module.parameters();
  training.buffers = module.buffers();
  Owner* state = owner.get();
  training.step = [=](int i) {
    uint64_t seed = 100 + static_cast<uint64_t>(i % 4);
    torch::Tensor x = noise(shape, seed).to(device), y = numbers(shape[0], classes, seed).to(device);
    state->optimizer->zero_grad();
    torch::Tensor loss = F::cross_entropy(state->model->forward(x), y);
    loss.backward();
    state->optimizer->step();
    return loss.detach();
  };
  training.owner = owner;
  return training;
}

Training mlp(torch::Device device) {
  nn::Sequential model(nn::Linear(12, 16), nn::ReLU(), nn::Linear(16, 16), nn::Tanh(), nn::Linear(16, 5));
  return classify<torch::optim::SGD>(model, device, {8, 12}, 5, torch::optim::SGDOptions(0.1));
}

Training cnn(torch::Device device) {
  nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 6, 3).padding(1)), nn::BatchNorm2d(6), nn::ReLU(),
                       nn::MaxPool2d(2), nn::Conv2d(nn::Conv2dOptions(6, 8, 3).stride(2)), nn::BatchNorm2d(8),
                       nn::ReLU(), nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(8, 4));
  return classify<torch::optim::SGD>(model, device, {4, 3, 12, 12}, 4,
                                     torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(1e-4));
}

Training grouped(torch::Device device) {
  nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(4, 8, 3).padding(2).dilation(2).groups(2)), nn::ReLU(),
                       nn::Conv2d(nn::Conv2dOptions(8, 8, 3).padding(1).groups(8)), nn::GELU(),
                       nn::Conv2d(nn::Conv2dOptions(8, 6, 1).stride(2)), nn::GroupNorm(2, 6), nn::Flatten(),
                       nn::Linear(96, 3));
  return classify<torch::optim::AdamW>(model, device, {3, 4, 8, 8}, 3, torch::optim::AdamWOptions(1e-2));
}

struct BlockImpl : nn::Module {
  BlockImpl(int64_t in, int64_t out, int64_t stride)
      : conv1(register_module(
            "conv1", nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false)))),
        bn1(register_module("bn1", nn::BatchNorm2d(out))),
        conv2(register_module("conv2", nn::Conv2d(nn::Conv2dOptions(out, out, 3).padding(1).bias(false)))),
        bn2(register_module("bn2", nn::BatchNorm2d(out))) {
    if (in != out) {
      shortcut =
          register_module("shortcut", nn::Conv2d(nn::Conv2dOptions(in, out, 1).stride(stride).bias(false)));
    }
  }
  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor y = bn2(conv2(torch::relu(bn1(conv1(x)))));
    y += shortcut.is_empty() ? x : shortcut(x);
    return torch::relu_(y);
  }
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Conv2d shortcut{nullptr};
};
TORCH_MODULE(Block);

Training resnet(torch::Device device) {
  nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 6, 3).padding(1).bias(false)), nn::BatchNorm2d(6),
                       nn::ReLU(), Block(6, 6, 1), Block(6, 10, 2), nn::AdaptiveAvgPool2d(1), nn::Flatten(),
                       nn::Linear(10, 4));
  return classify<torch::optim::SGD>(model, device, {4, 3, 8, 8}, 4,
                                     torch::optim::SGDOptions(0.05).momentum(0.9).nesterov(true));
}

struct EncoderImpl : nn::Module {
  EncoderImpl() {
    auto layer =
        nn::TransformerEncoderLayerOptions(16, 2).dim_feedforward(24).dropout(0.0).activation(torch::kGELU);
    encoder = register_module("encoder", nn::TransformerEncoder(nn::TransformerEncoderOptions(
                                             nn::TransformerEncoderLayer(layer), 2)));
    embedding = register_module("embedding", nn::Embedding(11, 16));
    head = register_module("head", nn::Linear(16, 3));
  }
  // The noise stands for tokens: its sign and size choose them.
  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor tokens = (x * 3).abs().clamp_max(10).to(torch::kLong);
    torch::Tensor mask = torch::triu(torch::full({6, 6}, -1e9, x.options()), 1);
    torch::Tensor y = encoder(embedding(tokens).transpose(0, 1), mask);
    return head(y.mean(0));
  }
  nn::TransformerEncoder encoder{nullptr};
  nn::Embedding embedding{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE(Encoder);

Training transformer(torch::Device device) {
  return classify<torch::optim::Adam>(Encoder(), device, {4, 6}, 3, torch::optim::AdamOptions(3e-3));
}

struct Gan {
  nn::Sequential generator, discriminator;
  std::unique_ptr<torch::optim::Adam> generator_step, discriminator_step;
};

Training dcgan(torch::Device device) {
  auto gan = std::make_shared<Gan>();
  gan->generator = nn::Sequential(
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 12, 3).bias(false)), nn::BatchNorm2d(12), nn::ReLU(),
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(12, 6, 4).stride(2).padding(1)), nn::BatchNorm2d(6),
      nn::ReLU(), nn::Upsample(nn::UpsampleOptions().scale_factor(std::vector<double>{2, 2})),
      nn::Conv2d(nn::Conv2dOptions(6, 1, 3).padding(1)), nn::Tanh());
  gan->discriminator =
      nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 6, 4).stride(2).padding(1)),
                     nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)), nn::BatchNorm2d(6),
                     nn::Conv2d(nn::Conv2dOptions(6, 1, 6)), nn::PReLU(), nn::Flatten());
  initialise(*gan->generator, 3);
  initialise(*gan->discriminator, 50);
  gan->generator->to(device);
  gan->discriminator->to(device);
  auto options = torch::optim::AdamOptions(2e-3).betas({0.5, 0.999});
  gan->generator_step = std::make_unique<torch::optim::Adam>(gan->generator->parameters(), options);
  gan->discriminator_step = std::make_unique<torch::optim::Adam>(gan->discriminator->parameters(), options);
  Training training;
  for (auto* module : {gan->generator.get(), gan->discriminator.get()}) {
    for (auto& parameter : module->parameters()) training.parameters.push_back(parameter);
    for (auto& buffer : module->buffers()) training.buffers.push_back(buffer);
  }
  Gan* state = gan.get();
  training.step = [=](int i) {
    uint64_t seed = 200 + static_cast<uint64_t>(i);
    torch::Tensor real = torch::tanh(noise({4, 1, 12, 12}, seed)).to(device);
    torch::Tensor latent = noise({4, 8, 1, 1}, seed + 1000).to(device);
    auto loss = [&](const torch::Tensor& x, double label) {
      torch::Tensor score = state->discriminator->forward(x);
      return F::binary_cross_entropy_with_logits(score, torch::full_like(score, label));
    };
    torch::Tensor fake = state->generator->forward(latent);
    state->discriminator_step->zero_grad();
    torch::Tensor discriminator_loss = loss(real, 0.9) + loss(fake.detach(), 0.0);
    discriminator_loss.backward();
    state->discriminator_step->step();
    state->generator_step->zero_grad();
    torch::Tensor generator_loss = loss(fake, 1.0);
    generator_loss.backward();
    state->generator_step->step();
    return torch::stack({discriminator_loss.detach(), generator_loss.detach()});
  };
  training.owner = gan;
  return training;
}

}  // namespace

std::vector<Task> tasks() {
  return {{"mlp", mlp, 1e-5},
          {"cnn", cnn, 1e-4},
          {"grouped", grouped, 2e-4},
          {"resnet", resnet, 1e-3},
          {"transformer", transformer, 5e-4},
          {"dcgan", dcgan, 2e-3}};
}

Task task_named(const std::string& name) {
  for (Task& task : tasks()) {
    if (task.name == name) return task;
  }
  throw std::runtime_error("no task " + name);
}

Training dropout_mlp(torch::Device device) {
  nn::Sequential model(nn::Linear(12, 24), nn::ReLU(), nn::Dropout(0.3), nn::Linear(24, 16), nn::Dropout(0.1),
                       nn::Linear(16, 5));
  return classify<torch::optim::SGD>(model, device, {8, 12}, 5, torch::optim::SGDOptions(0.05).momentum(0.9));
}

}  // namespace sluice::tests
