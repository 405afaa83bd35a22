// Fits a polynomial of degree four to noisy points.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;

constexpr int64_t kDegree = 4;
constexpr int64_t kBatch = 64;

// The powers 1 to kDegree of each x of [batch], as columns.
torch::Tensor powers(const torch::Tensor& x) {
  std::vector<torch::Tensor> columns;
  for (int64_t power = 1; power <= kDegree; ++power) columns.push_back(x.pow(power));
  return torch::stack(columns, 1);
}

void print(const char* name, const torch::Tensor& weight, const torch::Tensor& bias) {
  std::cout << name;
  for (int64_t power = kDegree; power >= 1; --power)
    std::cout << weight[0][power - 1].item<float>() << " x^" << power << " + ";
  std::cout << bias[0].item<float>() << "\n";
}

int main(int argc, char** argv) {
  gallery::Run run("polynomial", argc, argv, 500);
  if (run.device.is_xla()) sluice::init();  // Sluice

  const auto true_weight = torch::randn({1, kDegree}), true_bias = torch::randn({1});
  const auto points = [&](int64_t count) {
    const auto x = torch::rand({count}) * 2 - 1;
    const auto y = torch::mm(powers(x), true_weight.t()) + true_bias + 0.05 * torch::randn({count, 1});
    return std::pair(x.to(run.device), y.to(run.device));
  };

  nn::Linear model(kDegree, 1);
  model->to(run.device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.05));
  sluice::create_state(optimizer);  // Sluice

  for (int64_t step = 0; step < run.steps; ++step) {
    const auto [x, y] = points(kBatch);
    optimizer.zero_grad();
    const auto loss = nn::functional::mse_loss(model->forward(powers(x)), y);
    loss.backward();
    optimizer.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  torch::NoGradGuard no_grad;
  print("true:  ", true_weight, true_bias);
  print("found: ", model->weight.cpu(), model->bias.cpu());
  const auto [x, y] = points(1'000);
  const auto error = (model->forward(powers(x)) - y).square().sum() / (y - y.mean()).square().sum();
  return run.done("R2", 1 - error.item<double>());
}
