// Training without a session: register the device, then plain LibTorch; sluice::sync() ends each step.
#include <sluice/device/device.h>
#include <sluice/session/session.h>
#include <torch/torch.h>

#include <cstdlib>
#include <iostream>

namespace F = torch::nn::functional;

int main() {
  sluice::init();
  const torch::Device device("xla:0");
  torch::manual_seed(7);

  torch::nn::Sequential model(torch::nn::Linear(16, 32), torch::nn::ReLU(), torch::nn::Linear(32, 4));
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  sluice::create_state(optimizer);  // so that the first step is the same program as the others

  // The label of a row is the block of four columns with the largest sum.
  const auto rows = torch::randn({256, 16});
  const auto labels = rows.view({256, 4, 4}).sum(2).argmax(1);
  const auto inputs = rows.to(device);
  const auto targets = labels.to(device);

  float first = 0;
  float last = 0;
  for (int step = 0; step < 100; ++step) {
    optimizer.zero_grad();
    auto loss = F::cross_entropy(model->forward(inputs), targets);
    loss.backward();
    optimizer.step();
    sluice::sync();
    if (step == 0) first = loss.item<float>();
    if (step == 99) last = loss.item<float>();
  }
  std::cout << "loss " << first << " -> " << last << "\n";
  return last < 0.5F * first ? EXIT_SUCCESS : EXIT_FAILURE;
}
