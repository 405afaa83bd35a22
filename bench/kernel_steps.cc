// Training steps of small models, so that bench/kernels.py can leave out one kernel at a time: prints the
// processor's and the clock's microseconds of a step, the medians of the rounds, as JSON.
//   bench_kernel_steps MODEL [ROUNDS]
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "bench/against_eager.h"
#include "sluice/device/device.h"
#include "sluice/models/models.h"

namespace {

using sluice::bench::median;
using sluice::bench::seconds_of;
using torch::Tensor;
namespace nn = torch::nn;

struct Training {
  std::shared_ptr<nn::Module> module;
  std::function<Tensor()> loss;
  bool adam = false;
};

Tensor on_device(const Tensor& values) { return values.to(torch::Device(torch::kXLA, 0)); }

template <typename Module>
Training classifier(Module module, const Tensor& input, int64_t classes, bool adam = false) {
  module->to(torch::Device(torch::kXLA, 0));
  const Tensor x = on_device(input), y = on_device(torch::randint(classes, {input.size(0)}));
  return {module.ptr(), [=]() mutable { return nn::functional::cross_entropy(module->forward(x), y); }, adam};
}

template <typename Module>
Training regression(Module module, const Tensor& input) {
  module->to(torch::Device(torch::kXLA, 0));
  const Tensor x = on_device(input);
  return {module.ptr(), [=]() mutable { return module->forward(x).pow(2).mean(); }};
}

Training of_model(sluice::models::ModelPtr model, const Tensor& input, int64_t classes, bool adam = false) {
  model->to(torch::Device(torch::kXLA, 0));
  const Tensor x = on_device(input), y = on_device(torch::randint(classes, {input.size(0)}));
  return {model, [=] { return nn::functional::cross_entropy(model->forward(x), y); }, adam};
}

Training transformer(int64_t heads, int64_t length, double dropout) {
  const sluice::models::TransformerOptions options = {.classes = 10,
                                                      .layers = 4,
                                                      .width = 256,
                                                      .heads = heads,
                                                      .feedforward = 1024,
                                                      .dropout = dropout,
                                                      .vocabulary = 1000,
                                                      .max_length = length};
  return of_model(sluice::models::transformer(options), torch::randint(0, 1000, {16, length}), 10, true);
}

// A stack of inverted bottlenecks, as in MobileNet: expand, a window for each channel, project.
nn::Sequential bottlenecks() {
  nn::Sequential layers;
  layers->push_back(nn::Conv2d(nn::Conv2dOptions(3, 16, 3).stride(2).padding(1)));
  for (int i = 0; i < 4; ++i) {
    layers->push_back(nn::Conv2d(nn::Conv2dOptions(16, 96, 1).bias(false)));
    layers->push_back(nn::BatchNorm2d(96));
    layers->push_back(nn::ReLU6());
    layers->push_back(nn::Conv2d(nn::Conv2dOptions(96, 96, 3).padding(1).groups(96).bias(false)));
    layers->push_back(nn::BatchNorm2d(96));
    layers->push_back(nn::ReLU6());
    layers->push_back(nn::Conv2d(nn::Conv2dOptions(96, 16, 1).bias(false)));
    layers->push_back(nn::BatchNorm2d(16));
  }
  layers->push_back(nn::AdaptiveAvgPool2d(1));
  layers->push_back(nn::Flatten());
  layers->push_back(nn::Linear(16, 10));
  return layers;
}

// The generator of a DCGAN for 64x64 images.
nn::Sequential generator() {
  nn::Sequential layers;
  const int64_t channels[] = {256, 128, 64, 32};
  layers->push_back(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(100, 256, 4).bias(false)));
  for (int i = 0; i < 3; ++i) {
    layers->push_back(nn::BatchNorm2d(channels[i]));
    layers->push_back(nn::ReLU());
    layers->push_back(nn::ConvTranspose2d(
        nn::ConvTranspose2dOptions(channels[i], channels[i + 1], 4).stride(2).padding(1).bias(false)));
  }
  layers->push_back(nn::BatchNorm2d(32));
  layers->push_back(nn::ReLU());
  layers->push_back(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(32, 3, 4).stride(2).padding(1)));
  layers->push_back(nn::Tanh());
  return layers;
}

// Convolutions along time, as for audio: long windows, then few channels.
nn::Sequential waves() {
  return nn::Sequential(nn::Conv1d(nn::Conv1dOptions(1, 64, 80).stride(16)), nn::BatchNorm1d(64), nn::ReLU(),
                        nn::MaxPool1d(4), nn::Conv1d(64, 128, 3), nn::BatchNorm1d(128), nn::ReLU(),
                        nn::AdaptiveAvgPool1d(1), nn::Flatten(), nn::Linear(128, 10));
}

// LibTorch's example for MNIST.
nn::Sequential mnist() {
  return nn::Sequential(nn::Conv2d(1, 32, 3), nn::ReLU(), nn::Conv2d(32, 64, 3), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Flatten(), nn::Linear(9216, 128), nn::ReLU(), nn::Linear(128, 10));
}

// The first layer of a vision transformer, and of video models: windows that do not overlap.
nn::Sequential patches() {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(3, 192, 16).stride(16)), nn::GELU(), nn::Flatten(),
                        nn::Linear(192 * 196, 10));
}

nn::Sequential volumes() {
  return nn::Sequential(nn::Conv3d(nn::Conv3dOptions(1, 16, 3).padding(1)), nn::ReLU(), nn::MaxPool3d(2),
                        nn::Conv3d(nn::Conv3dOptions(16, 32, 3).padding(1)), nn::ReLU(), nn::MaxPool3d(2),
                        nn::Flatten(), nn::Linear(32 * 512, 10));
}

template <typename Layer, typename Options>
Training recurrent() {
  Layer layer(Options(128, 256));
  nn::Linear head(256, 10);
  layer->to(torch::Device(torch::kXLA, 0));
  head->to(torch::Device(torch::kXLA, 0));
  auto both = std::make_shared<nn::Module>();
  both->register_module("layer", layer.ptr());
  both->register_module("head", head.ptr());
  const Tensor x = on_device(torch::randn({50, 32, 128})), y = on_device(torch::randint(10, {32}));
  return {both, [=]() mutable {
            return nn::functional::cross_entropy(head->forward(std::get<0>(layer->forward(x))[-1]), y);
          }};
}

const std::map<std::string, std::function<Training()>>& models() {
  namespace m = sluice::models;
  static const std::map<std::string, std::function<Training()>> all = {
      {"resnet50",
       [] {
         return of_model(m::resnet50(1000), torch::randn({8, 3, 96, 96}), 1000);
       }},
      {"resnet50_small",
       [] {
         return of_model(m::resnet50(1000), torch::randn({32, 3, 32, 32}), 1000);
       }},
      {"resnet18_cifar",
       [] {
         return of_model(m::resnet({.small_images = true, .classes = 10}), torch::randn({16, 3, 32, 32}), 10);
       }},
      {"cifar_resnet8",
       [] {
         return of_model(m::create("cifar_resnet8", {.classes = 10}), torch::randn({64, 3, 32, 32}), 10);
       }},
      {"mlp",
       [] {
         return of_model(m::create("mlp", {.classes = 10, .channels = 1, .image_size = 28}),
                         torch::randn({128, 784}), 10);
       }},
      {"transformer", [] { return transformer(8, 128, 0); }},
      {"transformer_dropout", [] { return transformer(8, 128, 0.1); }},
      {"transformer_long", [] { return transformer(4, 512, 0); }},
      {"mobilenet",
       [] {
         return classifier(bottlenecks(), torch::randn({16, 3, 64, 64}), 10);
       }},
      {"dcgan",
       [] {
         return regression(generator(), torch::randn({32, 100, 1, 1}));
       }},
      {"audio",
       [] {
         return classifier(waves(), torch::randn({32, 1, 8000}), 10);
       }},
      {"mnist",
       [] {
         return classifier(mnist(), torch::randn({64, 1, 28, 28}), 10);
       }},
      {"patches",
       [] {
         return classifier(patches(), torch::randn({16, 3, 224, 224}), 10);
       }},
      {"volumes",
       [] {
         return classifier(volumes(), torch::randn({8, 1, 32, 32, 32}), 10);
       }},
      {"lstm", recurrent<nn::LSTM, nn::LSTMOptions>},
      {"gru", recurrent<nn::GRU, nn::GRUOptions>},
      {"rnn", recurrent<nn::RNN, nn::RNNOptions>},
  };
  return all;
}

std::unique_ptr<torch::optim::Optimizer> optimizer_of(const Training& training) {
  if (training.adam)
    return std::make_unique<torch::optim::AdamW>(training.module->parameters(),
                                                 torch::optim::AdamWOptions(1e-3));
  return std::make_unique<torch::optim::SGD>(training.module->parameters(),
                                             torch::optim::SGDOptions(1e-3).momentum(0.9));
}

int measure(const std::string& name, int rounds) {
  sluice::init();
  torch::manual_seed(0);
  const Training training = models().at(name)();
  const auto optimizer = optimizer_of(training);
  const auto step = [&] {
    optimizer->zero_grad();
    training.loss().backward();
    optimizer->step();
    sluice::sync("step");
  };
  for (int i = 0; i < 3; ++i) step();
  sluice::wait();
  std::vector<double> processor, clock;
  for (int round = 0; round < rounds; ++round) {
    const double work = seconds_of(CLOCK_PROCESS_CPUTIME_ID), begin = seconds_of(CLOCK_MONOTONIC);
    step();
    sluice::wait();
    processor.push_back((seconds_of(CLOCK_PROCESS_CPUTIME_ID) - work) * 1e6);
    clock.push_back((seconds_of(CLOCK_MONOTONIC) - begin) * 1e6);
  }
  const nlohmann::json result = {{"model", name},
                                 {"processor_us", median(processor)},
                                 {"least_processor_us", *std::ranges::min_element(processor)},
                                 {"clock_us", median(clock)}};
  std::printf("%s\n", result.dump().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || !models().contains(argv[1])) {
    std::fprintf(stderr, "usage: bench_kernel_steps MODEL [ROUNDS]; models:");
    for (const auto& [name, make] : models()) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  return measure(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 15);
}
