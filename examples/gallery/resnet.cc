// A residual network with batch normalization, and a learning rate that falls in steps.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

struct BlockImpl : nn::Module {
  BlockImpl(int64_t in, int64_t out, int64_t stride) {
    conv1 = register_module("conv1", conv(in, out, 3, stride));
    bn1 = register_module("bn1", nn::BatchNorm2d(out));
    conv2 = register_module("conv2", conv(out, out, 3));
    bn2 = register_module("bn2", nn::BatchNorm2d(out));
    if (stride != 1 || in != out)
      shortcut = register_module("shortcut", nn::Sequential(conv(in, out, 1, stride), nn::BatchNorm2d(out)));
  }
  torch::Tensor forward(torch::Tensor x) {
    const auto inner = bn2(conv2(torch::relu(bn1(conv1(x)))));
    return torch::relu(inner + (shortcut ? shortcut->forward(x) : x));
  }
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d bn1{nullptr}, bn2{nullptr};
  nn::Sequential shortcut{nullptr};
};
TORCH_MODULE(Block);

struct ResNetImpl : nn::Module {
  ResNetImpl() {
    stem = register_module("stem", nn::Sequential(conv(1, 16, 3), nn::BatchNorm2d(16), nn::ReLU()));
    blocks = register_module("blocks", nn::Sequential(Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2)));
    head = register_module("head", nn::Linear(64, 10));
  }
  torch::Tensor forward(torch::Tensor x) { return head(blocks->forward(stem->forward(x)).mean({2, 3})); }
  nn::Sequential stem{nullptr}, blocks{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE(ResNet);

int main(int argc, char** argv) {
  gallery::Run run("resnet", argc, argv, 150);
  if (run.device.is_xla()) sluice::init();  // Sluice

  const auto digits = run.digits();
  ResNet model;
  model->to(run.device);
  torch::optim::SGD optimizer(model->parameters(),
                              torch::optim::SGDOptions(0.05).momentum(0.9).nesterov(true).weight_decay(5e-4));
  torch::optim::StepLR schedule(optimizer, static_cast<unsigned>(run.steps / 3 + 1), 0.2);
  sluice::create_state(optimizer);  // Sluice

  for (int64_t step = 0; step < run.steps; ++step) {
    const auto rows = torch::randint(digits.train_labels.size(0), {64}, torch::kLong);
    const auto images = digits.train_images.index_select(0, rows).to(run.device);
    const auto labels = digits.train_labels.index_select(0, rows).to(run.device);
    optimizer.zero_grad();
    const auto loss =
        F::cross_entropy(model->forward(images), labels, F::CrossEntropyFuncOptions().label_smoothing(0.1));
    loss.backward();
    optimizer.step();
    schedule.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  torch::NoGradGuard no_grad;
  model->eval();
  const auto answers = model->forward(digits.test_images.to(run.device)).argmax(1);
  const auto right = answers.eq(digits.test_labels.to(run.device)).to(torch::kFloat).mean();
  return run.done("accuracy", right.item<double>());
}
