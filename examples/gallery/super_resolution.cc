// Super-resolution by sub-pixel convolution (Shi et al., 2016): twice the width and height, learnt from
// images of edges and waves.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t kSize = 32;

// Grey images [count, 1, kSize, kSize] from 0 to 1: a wave on each side of an edge.
torch::Tensor scenes(int64_t count) {
  const auto y = torch::arange(kSize).view({1, kSize, 1}), x = torch::arange(kSize).view({1, 1, kSize});
  const auto random = [&](double low, double high) {
    return torch::rand({count, 1, 1}) * (high - low) + low;
  };
  // How far each pixel is along a random direction from a random point.
  const auto along = [&] {
    const auto angle = random(0, 2 * M_PI), from_y = random(8, 24), from_x = random(8, 24);
    return (y - from_y) * angle.sin() + (x - from_x) * angle.cos();
  };
  const auto wave = [&] {
    const auto length = random(4, 16);
    return random(0.2, 0.8) + 0.2 * torch::sin(along() * (2 * M_PI) / length);
  };
  const auto side = (along() > 0).to(torch::kFloat);
  return (side * wave() + (1 - side) * wave()).unsqueeze(1);
}

struct NetImpl : nn::Module {
  NetImpl() {
    const auto conv = [](int64_t in, int64_t out, int64_t kernel) {
      return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).padding(kernel / 2));
    };
    layers = register_module(
        "layers", nn::Sequential(conv(1, 32, 5), nn::PReLU(), conv(32, 16, 3), nn::PReLU(), conv(16, 4, 3),
                                 nn::PixelShuffle(nn::PixelShuffleOptions(2))));
  }
  // What the layers add to a bicubic enlargement.
  torch::Tensor forward(const torch::Tensor& small) { return enlarged(small) + layers->forward(small); }

  static torch::Tensor enlarged(const torch::Tensor& small) {
    return F::interpolate(small, F::InterpolateFuncOptions()
                                     .scale_factor(std::vector<double>{2, 2})
                                     .mode(torch::kBicubic)
                                     .align_corners(false));
  }
  nn::Sequential layers{nullptr};
};
TORCH_MODULE(Net);

double psnr(const torch::Tensor& found, const torch::Tensor& wanted) {
  return -10 * (found - wanted).square().mean().log10().item<double>();
}

int main(int argc, char** argv) {
  gallery::Run run("super_resolution", argc, argv, 300);
  if (run.device.is_xla()) sluice::init();  // Sluice

  Net model;
  model->to(run.device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(3e-3));
  sluice::create_state(optimizer);  // Sluice

  for (int64_t step = 0; step < run.steps; ++step) {
    const auto large = scenes(16).to(run.device);
    optimizer.zero_grad();
    const auto loss = F::mse_loss(model->forward(torch::avg_pool2d(large, 2)), large);
    loss.backward();
    optimizer.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  torch::NoGradGuard no_grad;
  const auto large = scenes(64).to(run.device), small = torch::avg_pool2d(large, 2);
  std::cout << "bicubic PSNR " << psnr(NetImpl::enlarged(small), large) << "\n";
  return run.done("PSNR", psnr(model->forward(small), large));
}
