// A small U-Net (Ronneberger et al., 2015) that finds disks and squares in noisy images.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t kSize = 32, kClasses = 3;  // background, disk, square

// Images [count, 1, kSize, kSize] and the class of each pixel [count, kSize, kSize].
std::pair<torch::Tensor, torch::Tensor> scenes(int64_t count) {
  const auto y = torch::arange(kSize).view({1, kSize, 1}), x = torch::arange(kSize).view({1, 1, kSize});
  const auto place = [&] { return torch::randint(6, kSize - 6, {count, 1, 1}); };
  const auto radius = [&] { return torch::randint(3, 7, {count, 1, 1}); };
  auto classes = torch::zeros({count, kSize, kSize}, torch::kLong);
  const auto disk = (y - place()).square() + (x - place()).square() <= radius().square();
  classes.masked_fill_(disk, 1);
  const auto width = radius();
  classes.masked_fill_(torch::max((y - place()).abs(), (x - place()).abs()) < width, 2);
  const auto images = (classes > 0).to(torch::kFloat) + 0.4 * torch::randn(classes.sizes());
  return {images.unsqueeze(1), classes};
}

nn::Sequential convs(int64_t in, int64_t out) {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1)), nn::GroupNorm(4, out),
                        nn::ReLU(), nn::Conv2d(nn::Conv2dOptions(out, out, 3).padding(1)), nn::ReLU());
}

struct UNetImpl : nn::Module {
  UNetImpl() {
    down1 = register_module("down1", convs(1, 8));
    down2 = register_module("down2", convs(8, 16));
    middle = register_module("middle", convs(16, 32));
    up2 = register_module("up2", nn::ConvTranspose2d(nn::ConvTranspose2dOptions(32, 16, 2).stride(2)));
    merge2 = register_module("merge2", convs(32, 16));
    up1 = register_module("up1", nn::ConvTranspose2d(nn::ConvTranspose2dOptions(16, 8, 2).stride(2)));
    merge1 = register_module("merge1", convs(16, 8));
    head = register_module("head", nn::Conv2d(8, kClasses, 1));
  }
  torch::Tensor forward(torch::Tensor x) {
    const auto fine = down1->forward(x);
    const auto coarse = down2->forward(torch::max_pool2d(fine, 2));
    x = middle->forward(torch::max_pool2d(coarse, 2));
    x = merge2->forward(torch::cat({coarse, up2(x)}, 1));
    x = merge1->forward(torch::cat({fine, up1(x)}, 1));
    return head(x);
  }
  nn::Sequential down1{nullptr}, down2{nullptr}, middle{nullptr}, merge1{nullptr}, merge2{nullptr};
  nn::ConvTranspose2d up1{nullptr}, up2{nullptr};
  nn::Conv2d head{nullptr};
};
TORCH_MODULE(UNet);

int main(int argc, char** argv) {
  gallery::Run run("unet", argc, argv, 150);
  if (run.device.is_xla()) sluice::init();  // Sluice

  UNet model;
  model->to(run.device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(3e-3));
  sluice::create_state(optimizer);  // Sluice

  for (int64_t step = 0; step < run.steps; ++step) {
    const auto [images, classes] = scenes(16);
    optimizer.zero_grad();
    const auto loss = F::cross_entropy(model->forward(images.to(run.device)), classes.to(run.device));
    loss.backward();
    optimizer.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  torch::NoGradGuard no_grad;
  const auto [images, classes] = scenes(64);
  const auto found = F::one_hot(model->forward(images.to(run.device)).argmax(1), kClasses);
  const auto wanted = F::one_hot(classes.to(run.device), kClasses);
  const auto both = (found * wanted).sum({0, 1, 2}), either = (found + wanted).clamp_max(1).sum({0, 1, 2});
  return run.done("mean IoU", (both.to(torch::kFloat) / either).mean().item<double>());
}
