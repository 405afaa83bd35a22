// Classifiers of images.
#include "tests/programs/programs.h"

namespace sluice::tests {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

// The usual loop over batches of one data set.
template <typename Model, typename Loss>
void train_classifier(Model& model, torch::optim::Optimizer& optimizer, torch::Device device,
                      int64_t channels, int64_t size, int64_t classes, const Loss& loss_of, Curve& curve) {
  model->train();
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor x = images(8, channels, size, device), y = labels(8, classes, device);
    optimizer.zero_grad();
    torch::Tensor loss = loss_of(model->forward(x), y);
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

torch::Tensor cross_entropy(const torch::Tensor& output, const torch::Tensor& target) {
  return F::cross_entropy(output, target);
}

void logistic_regression(torch::Device device, Curve& curve) {
  nn::Sequential model(nn::Flatten(), nn::Linear(64, 10), nn::LogSoftmax(1));
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), 0.5);
  train_classifier(
      model, optimizer, device, 1, 8, 10,
      [](const auto& output, const auto& target) { return F::nll_loss(output, target); }, curve);
}

struct MlpImpl : nn::Module {
  MlpImpl() {
    fc1 = register_module("fc1", nn::Linear(64, 32));
    fc2 = register_module("fc2", nn::Linear(32, 16));
    fc3 = register_module("fc3", nn::Linear(16, 10));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(fc1->forward(x.reshape({x.size(0), 64})));
    x = torch::relu(fc2->forward(x));
    return torch::log_softmax(fc3->forward(x), /*dim=*/1);
  }
  nn::Linear fc1{nullptr}, fc2{nullptr}, fc3{nullptr};
};
TORCH_MODULE(Mlp);

void mlp(torch::Device device, Curve& curve) {
  Mlp model;
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(),
                              torch::optim::SGDOptions(0.1).momentum(0.9).nesterov(true));
  train_classifier(
      model, optimizer, device, 1, 8, 10,
      [](const auto& output, const auto& target) { return F::nll_loss(output, target); }, curve);
}

struct DigitsImpl : nn::Module {
  DigitsImpl() {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 6, 5)));
    conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(6, 12, 3)));
    fc1 = register_module("fc1", nn::Linear(48, 24));
    fc2 = register_module("fc2", nn::Linear(24, 10));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1->forward(x), 2));
    x = torch::relu(torch::max_pool2d(conv2->forward(x), 2));
    x = x.view({-1, 48});
    return torch::log_softmax(fc2->forward(torch::relu(fc1->forward(x))), 1);
  }
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::Linear fc1{nullptr}, fc2{nullptr};
};
TORCH_MODULE(Digits);

void digits(torch::Device device, Curve& curve) {
  Digits model;
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.5));
  train_classifier(
      model, optimizer, device, 1, 16, 10,
      [](const auto& output, const auto& target) { return torch::nll_loss(output, target); }, curve);
}

void lenet(torch::Device device, Curve& curve) {
  nn::Sequential model(nn::Conv2d(1, 6, 5), nn::Tanh(), nn::AvgPool2d(2), nn::Conv2d(6, 16, 3), nn::Tanh(),
                       nn::AvgPool2d(2), nn::Flatten(), nn::Linear(64, 32), nn::Tanh(), nn::Linear(32, 10));
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), 1e-2);
  train_classifier(model, optimizer, device, 1, 16, 10, cross_entropy, curve);
}

void vgg(torch::Device device, Curve& curve) {
  auto conv = [](int64_t in, int64_t out) { return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1)); };
  nn::Sequential model(conv(3, 8), nn::BatchNorm2d(8), nn::ReLU(nn::ReLUOptions(true)), nn::MaxPool2d(2),
                       conv(8, 16), nn::BatchNorm2d(16), nn::ReLU(nn::ReLUOptions(true)), nn::MaxPool2d(2),
                       nn::Flatten(), nn::Linear(64, 10));
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(),
                              torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(5e-4));
  torch::optim::StepLR scheduler(optimizer, /*step_size=*/2, /*gamma=*/0.5);
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor x = images(8, 3, 8, device), y = labels(8, 10, device);
    optimizer.zero_grad();
    torch::Tensor loss = F::cross_entropy(model->forward(x), y);
    loss.backward();
    optimizer.step();
    scheduler.step();
    curve.add(loss);
  }
}

struct ResidualImpl : nn::Module {
  ResidualImpl() {
    stem = register_module("stem", nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1).bias(false)));
    bn1 = register_module("bn1", nn::BatchNorm2d(8));
    conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(8, 8, 3).padding(1).bias(false)));
    bn2 = register_module("bn2", nn::BatchNorm2d(8));
    pool = register_module("pool", nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions(1)));
    fc = register_module("fc", nn::Linear(8, 10));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(bn1->forward(stem->forward(x)));
    torch::Tensor residual = x;
    x = bn2->forward(conv->forward(x));
    x += residual;
    return fc->forward(torch::flatten(pool->forward(torch::relu(x)), 1));
  }
  nn::Conv2d stem{nullptr}, conv{nullptr};
  nn::BatchNorm2d bn1{nullptr}, bn2{nullptr};
  nn::AdaptiveAvgPool2d pool{nullptr};
  nn::Linear fc{nullptr};
};
TORCH_MODULE(Residual);

void resnet(torch::Device device, Curve& curve) {
  Residual model;
  model->to(device);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-2).weight_decay(1e-2));
  train_classifier(model, optimizer, device, 3, 8, 10, cross_entropy, curve);
}

void mobilenet(torch::Device device, Curve& curve) {
  nn::Sequential model(
      nn::Conv2d(nn::Conv2dOptions(3, 8, 3).stride(2).padding(1)), nn::BatchNorm2d(8), nn::ReLU6(),
      nn::Conv2d(nn::Conv2dOptions(8, 8, 3).padding(1).groups(8)), nn::BatchNorm2d(8), nn::ReLU6(),
      nn::Conv2d(nn::Conv2dOptions(8, 16, 1)), nn::BatchNorm2d(16), nn::SiLU(),
      nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions(1)), nn::Flatten(), nn::Linear(16, 10));
  model->to(device);
  torch::optim::RMSprop optimizer(model->parameters(), torch::optim::RMSpropOptions(1e-3).momentum(0.9));
  train_classifier(model, optimizer, device, 3, 8, 10, cross_entropy, curve);
}

struct DenseImpl : nn::Module {
  DenseImpl() {
    for (int64_t i = 0; i < 3; ++i) {
      norms->push_back(nn::BatchNorm2d(4 + 4 * i));
      convs->push_back(nn::Conv2d(nn::Conv2dOptions(4 + 4 * i, 4, 3).padding(1)));
    }
    register_module("norms", norms);
    register_module("convs", convs);
    stem = register_module("stem", nn::Conv2d(3, 4, 1));
    fc = register_module("fc", nn::Linear(16, 10));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = stem->forward(x);
    for (size_t i = 0; i < 3; ++i) {
      torch::Tensor y = torch::relu(norms[i]->as<nn::BatchNorm2d>()->forward(x));
      x = torch::cat({x, convs[i]->as<nn::Conv2d>()->forward(y)}, 1);
    }
    return fc->forward(x.mean({2, 3}));
  }
  nn::ModuleList norms, convs;
  nn::Conv2d stem{nullptr};
  nn::Linear fc{nullptr};
};
TORCH_MODULE(Dense);

void densenet(torch::Device device, Curve& curve) {
  Dense model;
  model->to(device);
  torch::optim::Adagrad optimizer(model->parameters(), 0.05);
  train_classifier(model, optimizer, device, 3, 8, 10, cross_entropy, curve);
}

struct SqueezeImpl : nn::Module {
  SqueezeImpl() {
    conv = register_module("conv", nn::Conv2d(3, 8, 3));
    down = register_module("down", nn::Linear(8, 2));
    up = register_module("up", nn::Linear(2, 8));
    norm = register_module("norm", nn::GroupNorm(2, 8));
    fc = register_module("fc", nn::Linear(8, 10));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = F::silu(norm->forward(conv->forward(x)));
    torch::Tensor scale = torch::sigmoid(up->forward(torch::relu(down->forward(x.mean({2, 3})))));
    x = x * scale.unsqueeze(-1).unsqueeze(-1);
    return fc->forward(F::adaptive_avg_pool2d(x, F::AdaptiveAvgPool2dFuncOptions(1)).flatten(1));
  }
  nn::Conv2d conv{nullptr};
  nn::Linear down{nullptr}, up{nullptr}, fc{nullptr};
  nn::GroupNorm norm{nullptr};
};
TORCH_MODULE(Squeeze);

void squeeze_and_excitation(torch::Device device, Curve& curve) {
  Squeeze model;
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), 1e-2);
  train_classifier(model, optimizer, device, 3, 8, 10, cross_entropy, curve);
}

void transfer_learning(torch::Device device, Curve& curve) {
  nn::Sequential backbone(nn::Conv2d(3, 8, 3), nn::BatchNorm2d(8), nn::ReLU(), nn::Flatten());
  nn::Linear head(288, 5);
  backbone->to(device);
  head->to(device);
  for (auto& parameter : backbone->parameters()) parameter.set_requires_grad(false);
  backbone->eval();
  torch::optim::Adam optimizer(head->parameters(), 1e-2);
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor features;
    {
      torch::NoGradGuard no_grad;
      features = backbone->forward(images(8, 3, 8, device));
    }
    optimizer.zero_grad();
    torch::Tensor loss = F::cross_entropy(head->forward(features), labels(8, 5, device),
                                          F::CrossEntropyFuncOptions().label_smoothing(0.1));
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

void multi_label(torch::Device device, Curve& curve) {
  nn::Sequential model(nn::Flatten(), nn::Linear(64, 16), nn::LeakyReLU(), nn::Linear(16, 4));
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), 0.5);
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor target = torch::randint(2, {8, 4}).to(torch::kFloat).to(device);
    optimizer.zero_grad();
    torch::Tensor loss = F::binary_cross_entropy_with_logits(model->forward(images(8, 1, 8, device)), target);
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

void accumulation_and_clipping(torch::Device device, Curve& curve) {
  nn::Sequential model(nn::Flatten(), nn::Linear(64, 32), nn::ELU(), nn::Linear(32, 10));
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), 1e-2);
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    torch::Tensor total = torch::zeros({}, device);
    for (int part = 0; part < 3; ++part) {
      torch::Tensor loss =
          F::cross_entropy(model->forward(images(4, 1, 8, device)), labels(4, 10, device)) / 3;
      loss.backward();
      total += loss.detach();
    }
    torch::nn::utils::clip_grad_norm_(model->parameters(), 0.5);
    optimizer.step();
    curve.add(total);
  }
}

void mixup(torch::Device device, Curve& curve) {
  nn::Sequential model(nn::Conv2d(1, 4, 3), nn::ReLU(), nn::Flatten(), nn::Linear(144, 10));
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor x = images(8, 1, 8, device), y = labels(8, 10, device);
    const double share = 0.3 + 0.1 * step;
    torch::Tensor order = torch::randperm(8).to(device);
    torch::Tensor mixed = share * x + (1 - share) * x.index_select(0, order);
    optimizer.zero_grad();
    torch::Tensor output = model->forward(mixed);
    torch::Tensor loss = share * F::cross_entropy(output, y) +
                         (1 - share) * F::cross_entropy(output, y.index_select(0, order));
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

}  // namespace

std::vector<TutorialProgram> image_programs() {
  return {{"logistic_regression", logistic_regression},
          {"mlp", mlp},
          {"digits", digits},
          {"lenet", lenet},
          {"vgg", vgg},
          {"resnet", resnet},
          {"mobilenet", mobilenet},
          {"densenet", densenet},
          {"squeeze_and_excitation", squeeze_and_excitation},
          {"transfer_learning", transfer_learning},
          {"multi_label", multi_label},
          {"accumulation_and_clipping", accumulation_and_clipping},
          {"mixup", mixup}};
}

}  // namespace sluice::tests
