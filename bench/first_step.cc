// Whether a device computes what LibTorch's CPU computes: a product of matrices, and three training steps of
// a small ResNet, in f32 and in bf16. Prints JSON; the exit status is 1 where a difference is larger than its
// bound.
//   first_step [--plugin NAME]
//
// The f32 bounds hold for SLUICE_MATMUL_PRECISION=highest; those of the default are TF32's, whose products
// have 10 bits behind the point. A step's difference is relative to how far the parameters have moved.
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/device/device.h"
#include "sluice/device/runtime.h"
#include "sluice/models/models.h"

namespace {

using torch::Tensor;

// ‖found − expected‖ ÷ ‖of‖ of all elements, in f64.
double relative_difference(const std::vector<Tensor>& found, const std::vector<Tensor>& expected,
                           const std::vector<Tensor>& of) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    difference +=
        (found[i].to(torch::kDouble) - expected[i].to(torch::kDouble)).square().sum().item<double>();
    size += of[i].to(torch::kDouble).square().sum().item<double>();
  }
  return std::sqrt(difference / size);
}

double product_difference(torch::ScalarType type) {
  torch::manual_seed(1);
  const Tensor a = torch::randn({256, 512}).to(type), b = torch::randn({512, 128}).to(type);
  const torch::Device device(torch::kXLA, 0);
  const Tensor expected = torch::mm(a.to(torch::kDouble), b.to(torch::kDouble));
  const Tensor found = torch::mm(a.to(device), b.to(device)).cpu();
  return relative_difference({found}, {expected}, {expected});
}

// The parameters after so many steps, on the CPU. The first step's loss goes to `loss`.
std::vector<Tensor> train(torch::Device device, torch::ScalarType type, bool bf16, int steps, double& loss) {
  torch::manual_seed(2);
  auto model = sluice::models::create("cifar_resnet8", {.classes = 10});
  const Tensor image = torch::randn({16, 3, 32, 32}).to(type).to(device);
  const Tensor label = torch::randint(0, 10, {16}).to(device);
  model->to(type);
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    Tensor value;
    {
      sluice::Autocast autocast(device, bf16);
      value = torch::nn::functional::cross_entropy(model->forward(image), label);
    }
    value.backward();
    optimizer.step();
    if (!device.is_cpu()) sluice::sync("step");
    if (i == 0) loss = value.item<double>();
  }
  std::vector<Tensor> parameters;
  for (const Tensor& parameter : model->parameters()) parameters.push_back(parameter.detach().cpu());
  return parameters;
}

nlohmann::json step_difference(bool bf16, double bound) {
  const torch::Device device(torch::kXLA, 0);
  double ignored = 0, expected_loss = 0, loss = 0;
  const auto before = train(torch::kCPU, torch::kDouble, false, 0, ignored);
  const auto expected = train(torch::kCPU, torch::kDouble, false, 3, expected_loss);
  const sluice::base::Stopwatch watch;
  const auto found = train(device, torch::kFloat, bf16, 3, loss);
  std::vector<Tensor> moved;
  for (size_t i = 0; i < before.size(); ++i) moved.push_back(expected[i] - before[i]);
  const double difference = relative_difference(found, expected, moved);
  return {{"difference", difference},  {"bound", bound},
          {"ok", difference <= bound}, {"loss", loss},
          {"loss_cpu", expected_loss}, {"seconds", watch.seconds()}};
}

nlohmann::json product(torch::ScalarType type, double bound) {
  const double difference = product_difference(type);
  return {{"difference", difference}, {"bound", bound}, {"ok", difference <= bound}};
}

}  // namespace

int main(int argc, char** argv) {
  sluice::DeviceOptions options;
  if (argc == 3 && std::string(argv[1]) == "--plugin") options.plugin = argv[2];
  try {
    sluice::init(options);
    const std::string precision = sluice::device::runtime_options().matmul_precision;
    const bool exact = precision == "highest";
    nlohmann::json result = {
        {"device", sluice::describe_device()},
        {"matmul_precision", precision},
        {"product_f32", product(torch::kFloat, exact ? 1e-6 : 1e-3)},
        {"product_bf16", product(torch::kBFloat16, 5e-3)},
        {"step_f32", step_difference(false, exact ? 5e-3 : 5e-2)},
        {"step_bf16", step_difference(true, 0.3)},
    };
    bool ok = true;
    for (const char* name : {"product_f32", "product_bf16", "step_f32", "step_bf16"})
      ok &= result[name]["ok"].get<bool>();
    result["ok"] = ok;
    std::printf("%s\n", result.dump(2).c_str());
    return ok ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "first_step: %s\n", error.what());
    return 1;
  }
}
