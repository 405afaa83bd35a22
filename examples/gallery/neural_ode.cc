// A neural differential equation (Chen et al., 2018), solved by the classical Runge-Kutta method: the network
// learns the law of a damped oscillator from pieces of its paths.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t kRounds = 10;
constexpr double kSeconds = 0.025;

// One round of the method for dx/dt = law(x).
template <typename Law>
torch::Tensor round_of(const Law& law, const torch::Tensor& x) {
  const auto a = law(x), b = law(x + kSeconds / 2 * a);
  const auto c = law(x + kSeconds / 2 * b), d = law(x + kSeconds * c);
  return x + kSeconds / 6 * (a + 2 * b + 2 * c + d);
}

// The states after each of `rounds` rounds, [rounds, batch, 2].
template <typename Law>
torch::Tensor path(const Law& law, torch::Tensor x, int64_t rounds) {
  std::vector<torch::Tensor> states;
  for (int64_t i = 0; i < rounds; ++i) {
    x = round_of(law, x);
    states.push_back(x);
  }
  return torch::stack(states);
}

// The true law: cubes of the state turn and fade.
torch::Tensor oscillator(const torch::Tensor& x) {
  const auto cube = x.pow(3);
  const auto p = cube.select(1, 0), q = cube.select(1, 1);
  return torch::stack({-0.1 * p + 2 * q, -2 * p - 0.1 * q}, 1);
}

int main(int argc, char** argv) {
  gallery::Run run("neural_ode", argc, argv, 300);
  if (run.device.is_xla()) sluice::init();  // Sluice

  nn::Sequential network(nn::Linear(2, 64), nn::Tanh(), nn::Linear(64, 2));
  network->to(run.device);
  torch::optim::Adam optimizer(network->parameters(), torch::optim::AdamOptions(5e-3));
  sluice::create_state(optimizer);  // Sluice
  const auto learnt = [&](const torch::Tensor& x) { return network->forward(x.pow(3)); };

  for (int64_t step = 0; step < run.steps; ++step) {
    const auto start = torch::rand({64, 2}) * 4 - 2;
    const auto wanted = path(oscillator, start, kRounds).to(run.device);
    optimizer.zero_grad();
    const auto loss = F::l1_loss(path(learnt, start.to(run.device), kRounds), wanted);
    loss.backward();
    optimizer.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  // A path that is five times as long as those that the network has seen.
  torch::NoGradGuard no_grad;
  const auto start = torch::tensor({{2.0F, 0.0F}});
  const auto wanted = path(oscillator, start, 5 * kRounds);
  const auto found = path(learnt, start.to(run.device), 5 * kRounds).cpu();
  return run.done("mean error of a long path", (found - wanted).abs().mean().item<double>());
}
