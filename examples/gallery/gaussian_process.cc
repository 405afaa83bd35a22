// Gaussian process regression: the kernel's parameters maximize the marginal likelihood, by a Cholesky
// decomposition in each step.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

constexpr int64_t kPoints = 96;

torch::Tensor truth(const torch::Tensor& x) { return torch::sin(3 * x) + 0.5 * torch::sin(7 * x); }

// The parameters are logarithms: of the kernel's height, its length, and the noise.
struct Process : torch::nn::Module {
  Process() { logs = register_parameter("logs", torch::tensor({0.0F, 0.0F, -1.0F})); }

  torch::Tensor kernel(const torch::Tensor& a, const torch::Tensor& b) const {
    const auto distance = (a.unsqueeze(1) - b.unsqueeze(0)) / logs[1].exp();
    return (2 * logs[0]).exp() * (-0.5 * distance.square()).exp();
  }
  // The lower triangle of the covariance of values at x, with their noise.
  torch::Tensor triangle(const torch::Tensor& x) const {
    const auto noise = (2 * logs[2]).exp() + 1e-4;
    return torch::linalg_cholesky(kernel(x, x) + noise * torch::eye(x.size(0), x.options()));
  }
  // The negative logarithm of the likelihood of values y at x, for each point.
  torch::Tensor loss(const torch::Tensor& x, const torch::Tensor& y) const {
    const auto lower = triangle(x);
    const auto whitened = torch::linalg_solve_triangular(lower, y.unsqueeze(1), /*upper=*/false);
    const auto half_log_determinant = lower.diagonal().log().sum();
    return (0.5 * whitened.square().sum() + half_log_determinant) / x.size(0) + 0.5 * std::log(2 * M_PI);
  }
  // The mean of the process at `at` [count], given values y at x.
  torch::Tensor predict(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& at) const {
    const auto weights = torch::cholesky_solve(y.unsqueeze(1), triangle(x));
    return torch::mm(kernel(at, x), weights).squeeze(1);
  }
  torch::Tensor logs;
};

int main(int argc, char** argv) {
  gallery::Run run("gaussian_process", argc, argv, 150);
  if (run.device.is_xla()) sluice::init();  // Sluice

  const auto places = torch::rand({kPoints}) * 4 - 2;
  const auto x = places.to(run.device), y = (truth(places) + 0.2 * torch::randn({kPoints})).to(run.device);
  Process process;
  process.to(run.device);
  torch::optim::Adam optimizer(process.parameters(), torch::optim::AdamOptions(0.05));
  sluice::create_state(optimizer);  // Sluice

  for (int64_t step = 0; step < run.steps; ++step) {
    optimizer.zero_grad();
    const auto loss = process.loss(x, y);
    loss.backward();
    optimizer.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  torch::NoGradGuard no_grad;
  std::cout << "height, length and noise: " << process.logs.exp().cpu().view({1, 3}) << "\n";
  const auto at = torch::linspace(-2, 2, 200);
  const auto error = process.predict(x, y, at.to(run.device)).cpu() - truth(at);
  return run.done("RMSE", error.square().mean().sqrt().item<double>());
}
