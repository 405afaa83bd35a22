// Forecasts the next day of an hourly series from its last three days, by dilated causal convolutions.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t kPast = 72, kNext = 24, kChannels = 32;

// Windows of a load with the rhythm of a day and of a week, a drift and noise: [count, kPast + kNext].
torch::Tensor windows(int64_t count) {
  const auto hour = torch::arange(kPast + kNext) + torch::randint(24 * 7, {count, 1});
  const auto size = 0.5 + torch::rand({count, 1}), drift = 0.01 * torch::randn({count, 1});
  const auto day = torch::sin(hour * (2 * M_PI / 24)) + 0.5 * torch::sin(hour * (4 * M_PI / 24) + 1);
  const auto week = 0.5 * torch::sin(hour * (2 * M_PI / (24 * 7)));
  return size * (day + week) + drift * torch::arange(kPast + kNext) + 0.1 * torch::randn(hour.sizes());
}

struct NetImpl : nn::Module {
  NetImpl() {
    int64_t in = 1;
    for (const int64_t dilation : {1, 2, 4, 8, 16}) {
      convs->push_back(nn::Conv1d(nn::Conv1dOptions(in, kChannels, 3).dilation(dilation)));
      in = kChannels;
    }
    register_module("convs", convs);
    head = register_module("head", nn::Linear(kChannels, kNext));
  }
  // The next kNext hours of x [batch, kPast], compared with its last day.
  torch::Tensor forward(const torch::Tensor& x) {
    auto h = x.unsqueeze(1);
    for (const auto& module : *convs) {
      auto& conv = *module->as<nn::Conv1d>();
      const int64_t reach = 2 * conv.options.dilation()->at(0);
      const auto inner = torch::gelu(conv.forward(F::pad(h, F::PadFuncOptions({reach, 0}))));
      h = h.size(1) == kChannels ? h + inner : inner;
    }
    return x.slice(1, -kNext) + head(h.select(2, -1));
  }
  nn::ModuleList convs;
  nn::Linear head{nullptr};
};
TORCH_MODULE(Net);

int main(int argc, char** argv) {
  gallery::Run run("forecasting", argc, argv, 300);
  if (run.device.is_xla()) sluice::init();  // Sluice

  Net model;
  model->to(run.device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(2e-3));
  sluice::create_state(optimizer);  // Sluice

  for (int64_t step = 0; step < run.steps; ++step) {
    const auto series = windows(64).to(run.device);
    optimizer.zero_grad();
    const auto loss = F::smooth_l1_loss(model->forward(series.slice(1, 0, kPast)), series.slice(1, kPast));
    loss.backward();
    optimizer.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  torch::NoGradGuard no_grad;
  const auto series = windows(500).to(run.device);
  const auto past = series.slice(1, 0, kPast), next = series.slice(1, kPast);
  const auto error = (model->forward(past) - next).abs().mean();
  const auto naive = (past.slice(1, -kNext) - next).abs().mean();  // the same hour of the day before
  return run.done("MASE", (error / naive).item<double>());
}
