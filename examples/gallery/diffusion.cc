// A denoising diffusion model (Ho et al., 2020) of points on a spiral.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t kTimes = 100, kHidden = 128;

// Points [count, 2] on a spiral.
torch::Tensor spiral(const torch::Tensor& along) {
  const auto angle = along * (3 * M_PI);
  return torch::stack({angle.cos(), angle.sin()}, 1) * (0.3 + 0.7 * along).unsqueeze(1) * 1.5;
}

// Predicts the noise in points x [batch, 2] at times [batch] from 0 to kTimes - 1.
struct DenoiserImpl : nn::Module {
  DenoiserImpl() {
    const auto linear = [](int64_t in, int64_t out) { return nn::Linear(in, out); };
    layers = register_module(
        "layers", nn::Sequential(linear(2 + 16, kHidden), nn::SiLU(), linear(kHidden, kHidden), nn::SiLU(),
                                 linear(kHidden, kHidden), nn::SiLU(), linear(kHidden, 2)));
    frequencies = register_buffer("frequencies", torch::exp2(torch::arange(8)) * (M_PI / kTimes / 2));
  }
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& times) {
    const auto phase = times.unsqueeze(1) * frequencies;
    return layers->forward(torch::cat({x, phase.sin(), phase.cos()}, 1));
  }
  nn::Sequential layers{nullptr};
  torch::Tensor frequencies;
};
TORCH_MODULE(Denoiser);

int main(int argc, char** argv) {
  gallery::Run run("diffusion", argc, argv, 1'000);
  if (run.device.is_xla()) sluice::init();  // Sluice

  Denoiser model;
  model->to(run.device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(2e-3));
  torch::optim::StepLR schedule(optimizer, static_cast<unsigned>(run.steps / 2 + 1), 0.2);
  sluice::create_state(optimizer);  // Sluice

  const auto beta = torch::linspace(1e-4, 0.1, kTimes);
  const auto kept = (1 - beta).cumprod(0);  // the share of the point's variance that is left at each time
  const auto kept_there = kept.to(run.device);

  for (int64_t step = 0; step < run.steps; ++step) {
    const auto points = spiral(torch::rand({256})).to(run.device);
    const auto noise = torch::randn({256, 2}).to(run.device);
    const auto times = torch::randint(kTimes, {256}, torch::kLong).to(run.device);
    const auto share = kept_there.index_select(0, times).unsqueeze(1);
    optimizer.zero_grad();
    const auto noisy = share.sqrt() * points + (1 - share).sqrt() * noise;
    const auto loss = F::mse_loss(model->forward(noisy, times), noise);
    loss.backward();
    optimizer.step();
    schedule.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  // From noise to points, one time after the other.
  torch::NoGradGuard no_grad;
  auto x = torch::randn({500, 2}).to(run.device);
  for (int64_t time = kTimes - 1; time >= 0; --time) {
    const double b = beta[time].item<double>(), left = kept[time].item<double>();
    const auto predicted = model->forward(x, torch::full({500}, time, torch::kLong).to(run.device));
    const auto noise = torch::randn({500, 2}).to(run.device);
    x = (x - b / std::sqrt(1 - left) * predicted) / std::sqrt(1 - b) + (time > 0 ? std::sqrt(b) : 0) * noise;
    sluice::sync();  // Sluice
  }
  const auto curve = spiral(torch::linspace(0, 1, 400));
  const auto distance = std::get<0>(torch::cdist(x.cpu(), curve).min(1)).mean();
  return run.done("mean distance", distance.item<double>());
}
