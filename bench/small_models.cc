// Training steps so small that what the host does for them decides: a regression, a multilayer perceptron and
// a long chain of element-wise operations, beside LibTorch eager on the same cores. Prints JSON: microseconds
// a step, of them of recording, and how many operations a step records.
//   bench_small_models [ROUNDS]
#include <torch/torch.h>

#include <cstdio>
#include <functional>
#include <string>

#include "bench/against_eager.h"

namespace {

using sluice::base::Stopwatch;
using torch::Tensor;

constexpr int kSteps = 200;  // of a round, with one wait at their end

struct Training {
  std::vector<Tensor> parameters;
  std::function<Tensor(const std::vector<Tensor>&)> loss;
};

Training regression() {
  return {{torch::zeros({1, 1}), torch::zeros({1})}, [](const std::vector<Tensor>& p) {
            const Tensor x = torch::ones({4, 1}, p[0].options().requires_grad(false));
            return (x * p[0] + p[1] - 1).pow(2).mean();
          }};
}

Training perceptron() {
  torch::manual_seed(0);
  return {{torch::randn({8, 16}), torch::randn({8}), torch::randn({2, 8}), torch::randn({2})},
          [](const std::vector<Tensor>& p) {
            const Tensor x = torch::ones({4, 16}, p[0].options().requires_grad(false));
            return torch::linear(torch::relu(torch::linear(x, p[0], p[1])), p[2], p[3]).pow(2).mean();
          }};
}

Training chain() {
  return {{torch::ones({8})}, [](const std::vector<Tensor>& p) {
            Tensor x = p[0];
            for (int i = 0; i < 200; ++i) x = torch::sin(x);
            return x.sum();
          }};
}

class Side {
 public:
  Side(const Training& training, torch::Device device) : loss_(training.loss), device_(device) {
    for (const Tensor& p : training.parameters) parameters_.push_back(p.clone().to(device).requires_grad_());
    optimizer_ = std::make_unique<torch::optim::SGD>(parameters_, 0.01);
    for (int i = 0; i < 10; ++i) step();
    finish();
  }
  double microseconds() {
    const Stopwatch watch;
    for (int i = 0; i < kSteps; ++i) step();
    finish();
    return watch.seconds() * 1e6 / kSteps;
  }

 private:
  void step() {
    optimizer_->zero_grad();
    loss_(parameters_).backward();
    optimizer_->step();
    if (!device_.is_cpu()) sluice::sync("step");
  }
  void finish() const {
    if (!device_.is_cpu()) sluice::wait();
  }

  std::function<Tensor(const std::vector<Tensor>&)> loss_;
  torch::Device device_;
  std::vector<Tensor> parameters_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
};

nlohmann::json measure(const Training& training, int rounds) {
  Side there(training, torch::Device("xla:0")), here(training, torch::kCPU);
  std::vector<double> device_us, eager_us, recording_us;
  double operations = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto before = sluice::counters();
    device_us.push_back(there.microseconds());
    const auto after = sluice::counters();
    recording_us.push_back((after.trace_seconds - before.trace_seconds) * 1e6 / kSteps);
    operations = static_cast<double>(after.recorded - before.recorded) / kSteps;
    eager_us.push_back(here.microseconds());
  }
  using sluice::bench::median;
  return {{"device_us", median(device_us)},
          {"recording_us", median(recording_us)},
          {"operations", operations},
          {"eager_us", median(eager_us)}};
}

}  // namespace

int main(int argc, char** argv) {
  sluice::init();
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  nlohmann::json all;
  all["regression"] = measure(regression(), rounds);
  all["perceptron"] = measure(perceptron(), rounds);
  all["chain"] = measure(chain(), rounds);
  std::printf("%s\n", all.dump(2).c_str());
  return 0;
}
