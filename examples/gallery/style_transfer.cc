// Style transfer (Gatys et al., 2015): optimizes an image, not a network. The features are those of random
// convolutions, which carry texture too (Ustyuzhaninov et al., 2016).
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t kSize = 48;

// Three scales of features of an image [1, 3, height, width].
struct FeaturesImpl : nn::Module {
  FeaturesImpl() {
    for (const int64_t in : {3, 32, 32})
      convs->push_back(nn::Conv2d(nn::Conv2dOptions(in, 32, 3).padding(1).padding_mode(torch::kReflect)));
    register_module("convs", convs);
  }
  std::vector<torch::Tensor> forward(torch::Tensor x) {
    std::vector<torch::Tensor> scales;
    for (const auto& conv : *convs) {
      x = torch::relu(conv->as<nn::Conv2d>()->forward(x));
      scales.push_back(x);
      x = torch::avg_pool2d(x, 2);
    }
    return scales;
  }
  nn::ModuleList convs;
};
TORCH_MODULE(Features);

// How often features occur together, [channels, channels], wherever they are in the image.
torch::Tensor gram(const torch::Tensor& features) {
  const auto flat = features.squeeze(0).flatten(1);
  return torch::mm(flat, flat.t()) / flat.size(1);
}

// Red and blue rings, and the stripes whose style they get.
std::pair<torch::Tensor, torch::Tensor> content_and_style() {
  const auto y = torch::linspace(-1, 1, kSize).unsqueeze(1), x = torch::linspace(-1, 1, kSize).unsqueeze(0);
  const auto rings = 0.5 + 0.5 * torch::sin(9 * (x.square() + y.square()).sqrt());
  const auto stripes = 0.5 + 0.5 * torch::sin(20 * (x + y));
  const auto half = torch::full_like(rings, 0.5);
  return {torch::stack({rings, half, 1 - rings}).unsqueeze(0),
          torch::stack({stripes, stripes * half, 1 - stripes}).unsqueeze(0)};
}

int main(int argc, char** argv) {
  gallery::Run run("style_transfer", argc, argv, 150);
  if (run.device.is_xla()) sluice::init();  // Sluice

  Features network;
  network->to(run.device);
  for (auto& parameter : network->parameters()) parameter.set_requires_grad(false);
  const auto [content, style] = content_and_style();
  const auto wanted = network->forward(content.to(run.device));
  std::vector<torch::Tensor> grams;
  for (const auto& features : network->forward(style.to(run.device))) grams.push_back(gram(features));
  sluice::sync();  // Sluice

  auto image = content.to(run.device).clone().requires_grad_();
  torch::optim::Adam optimizer({image}, torch::optim::AdamOptions(0.02));
  sluice::create_state(optimizer);  // Sluice
  torch::Tensor first, other_style;

  for (int64_t step = 0; step < run.steps; ++step) {
    optimizer.zero_grad();
    const auto features = network->forward(image);
    other_style = torch::zeros({}, run.device);
    for (size_t i = 0; i < grams.size(); ++i)
      other_style = other_style + F::mse_loss(gram(features[i]), grams[i]) / grams[i].square().mean();
    const auto loss = other_style + 0.1 * F::mse_loss(features[2], wanted[2]) / wanted[2].square().mean();
    loss.backward();
    optimizer.step();
    {
      torch::NoGradGuard no_grad;
      image.clamp_(0, 1);
    }
    other_style = other_style.detach();
    if (step == 0) first = other_style;
    sluice::sync();  // Sluice
    run.log(step, loss);
  }
  return run.done("style loss left", (other_style / first).item<double>());
}
