// The CPU's kernels inside a program, against LibTorch's CPU: one network that calls each of them.
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

struct Network {
  explicit Network(torch::Device device) {
    namespace nn = torch::nn;
    torch::manual_seed(3);
    layers =
        nn::Sequential(nn::Conv2d(nn::Conv2dOptions(3, 32, 3).padding(1)), nn::BatchNorm2d(32), nn::ReLU(),
                       nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)),
                       nn::Conv2d(nn::Conv2dOptions(32, 64, 3).padding(1).bias(false)), nn::BatchNorm2d(64),
                       nn::ReLU(), nn::ConvTranspose2d(nn::ConvTranspose2dOptions(64, 32, 3).padding(1)),
                       nn::ReLU(), nn::Conv2d(nn::Conv2dOptions(32, 32, 3).groups(2).padding(1)),
                       nn::Conv2d(nn::Conv2dOptions(32, 48, 1).stride(2)), nn::Flatten(),
                       nn::Linear(48 * 5 * 5, 96), nn::ReLU(), nn::Linear(96, 10));
    input = torch::randn({8, 3, 20, 18}).to(device);
    target = torch::randint(0, 10, {8}).to(device);
    layers->to(device);
  }

  // The loss and all gradients.
  std::vector<torch::Tensor> gradients() {
    torch::Tensor loss = torch::nn::functional::cross_entropy(layers->forward(input), target);
    loss.backward();
    std::vector<torch::Tensor> all = {loss.detach()};
    for (const torch::Tensor& parameter : layers->parameters()) all.push_back(parameter.grad());
    return all;
  }

  torch::nn::Sequential layers;
  torch::Tensor input, target;
};

TEST(CpuKernels, ANetworkOfThemIsLibTorchs) {
  Network expected(torch::kCPU);
  const std::vector<torch::Tensor> wanted = expected.gradients();
  for (const bool kernels : {true, false}) {
    DeviceOptions options;
    options.cpu_kernels = kernels;
    restart(options);
    Network found(test_device());
    const std::vector<torch::Tensor> made = found.gradients();
    cut();
    ASSERT_EQ(made.size(), wanted.size());
    for (size_t i = 0; i < made.size(); ++i) {
      const double scale = std::max(1e-3, wanted[i].abs().max().item<double>());
      expect_same(made[i].cpu() / scale, wanted[i] / scale, 1e-4,
                  c10::str("kernels ", kernels, ", tensor ", i));
    }
    expect_same(found.layers->buffers(), expected.layers->buffers(), 1e-4, "running statistics");
  }
  restart();
}

}  // namespace
}  // namespace sluice::tests
