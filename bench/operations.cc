// One operation and its gradient, on the device beside LibTorch eager on the same cores.
//
//   bench_operations [rounds [operation…]]
//
// Prints JSON: for each shape both medians in milliseconds, and eager's divided by the device's. Each round
// runs one side after the other. SLUICE_CPU_KERNELS=0 leaves the device to XLA's own code; eager is the same
// then and makes the two runs comparable.
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "sluice/base/clock.h"
#include "sluice/device/device.h"

namespace sluice {
namespace {

namespace functional = torch::nn::functional;
using torch::Tensor;

// Times that a side does the operation in a round.
constexpr int kTogether = 4;
constexpr int kWarmUp = 3;
constexpr double kWarmSeconds = 0.1;
constexpr int kThreads = 2;

// One operation on one device. The inputs whose gradients are wanted are parameters.
struct Case {
  std::vector<Tensor> parameters;
  std::function<Tensor()> operation;
};
using MakeCase = std::function<Case(torch::Device)>;

Tensor random_parameter(torch::IntArrayRef dims, torch::Device device) {
  return torch::randn(dims).to(device).requires_grad_();
}

// From [batch, positions, heads * size], as models make queries, keys and values.
MakeCase attention(int64_t batch, int64_t heads, int64_t positions, int64_t size, bool causal) {
  return [=](torch::Device device) {
    Case made;
    for (int i = 0; i < 3; ++i)
      made.parameters.push_back(random_parameter({batch, positions, heads * size}, device));
    made.operation = [=, parameters = made.parameters] {
      std::vector<Tensor> split;
      for (const Tensor& x : parameters)
        split.push_back(x.view({batch, positions, heads, size}).transpose(1, 2));
      return at::scaled_dot_product_attention(split[0], split[1], split[2], {}, 0, causal)
          .transpose(1, 2)
          .reshape({batch, positions, heads * size});
    };
    return made;
  };
}

MakeCase layer_norm(int64_t rows, int64_t columns) {
  return [=](torch::Device device) {
    Case made;
    made.parameters = {random_parameter({rows, columns}, device), random_parameter({columns}, device),
                       random_parameter({columns}, device)};
    made.operation = [columns, p = made.parameters] {
      return torch::layer_norm(p[0], {columns}, p[1], p[2]);
    };
    return made;
  };
}

MakeCase cross_entropy(int64_t rows, int64_t classes) {
  return [=](torch::Device device) {
    Case made;
    made.parameters = {random_parameter({rows, classes}, device)};
    const Tensor target = torch::randint(0, classes, {rows}).to(device);
    made.operation = [target, x = made.parameters[0]] { return functional::cross_entropy(x, target); };
    return made;
  };
}

MakeCase embedding(int64_t words, int64_t columns, int64_t vocabulary) {
  return [=](torch::Device device) {
    Case made;
    made.parameters = {random_parameter({vocabulary, columns}, device)};
    const Tensor indices = torch::randint(0, vocabulary, {words}).to(device);
    made.operation = [indices, w = made.parameters[0]] { return torch::embedding(w, indices); };
    return made;
  };
}

MakeCase gelu(int64_t rows, int64_t columns) {
  return [=](torch::Device device) {
    Case made;
    made.parameters = {random_parameter({rows, columns}, device)};
    made.operation = [x = made.parameters[0]] { return torch::gelu(x); };
    return made;
  };
}

// A side's inputs, and the gradient that its results are given.
class Side {
 public:
  Side(const MakeCase& make, torch::Device device) : case_(make(device)), device_(device) {
    torch::NoGradGuard no_grad;
    gradient_ = torch::randn(case_.operation().sizes()).to(device);
    for (int i = 0; i < kWarmUp; ++i) run();
  }

  // Of one operation. Untimed ones come first: the threads of the other side look for work for a while after
  // it and would share the cores.
  double milliseconds() {
    const base::Stopwatch warming;
    do {
      run();
    } while (warming.seconds() < kWarmSeconds);
    const base::Stopwatch watch;
    run();
    return watch.seconds() * 1000 / kTogether;
  }

 private:
  void run() {
    torch::AutoGradMode with_gradients(true);
    for (int i = 0; i < kTogether; ++i) {
      for (Tensor& parameter : case_.parameters) parameter.mutable_grad() = Tensor();
      result_ = case_.operation();
      result_.backward(gradient_);
      if (!device_.is_cpu()) sync();
    }
    if (!device_.is_cpu()) wait();
  }

  Case case_;
  torch::Device device_;
  Tensor gradient_, result_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

nlohmann::json compare(const MakeCase& make, int rounds) {
  torch::manual_seed(1);
  Side device(make, torch::Device("xla:0")), eager(make, torch::kCPU);
  std::vector<double> device_ms, eager_ms;
  for (int i = 0; i < rounds; ++i) {
    device_ms.push_back(device.milliseconds());
    eager_ms.push_back(eager.milliseconds());
  }
  const double of_device = median(device_ms), of_eager = median(eager_ms);
  return {{"device_ms", of_device}, {"eager_ms", of_eager}, {"eager_by_device", of_eager / of_device}};
}

int run(int argc, char** argv) {
  const std::map<std::string, std::map<std::string, MakeCase>> all = {
      {"attention",
       {{"16 x 8 heads, 128 x 32", attention(16, 8, 128, 32, false)},
        {"4 x 12 heads, 512 x 64", attention(4, 12, 512, 64, false)},
        {"1 x 12 heads, 2048 x 64, causal", attention(1, 12, 2048, 64, true)},
        {"8 x 12 heads, 197 x 64", attention(8, 12, 197, 64, false)}}},
      {"layer_norm",
       {{"2048 x 256", layer_norm(2048, 256)},
        {"4096 x 768", layer_norm(4096, 768)},
        {"8192 x 100", layer_norm(8192, 100)}}},
      {"cross_entropy",
       {{"2048 x 1000", cross_entropy(2048, 1000)}, {"1024 x 32000", cross_entropy(1024, 32000)}}},
      {"embedding",
       {{"2048 x 256 of 1000", embedding(2048, 256, 1000)},
        {"2048 x 256 of 30000", embedding(2048, 256, 30000)},
        {"8192 x 768 of 1000", embedding(8192, 768, 1000)}}},
      {"gelu", {{"2048 x 1024", gelu(2048, 1024)}}},
  };
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  const std::vector<std::string> chosen(argv + std::min(argc, 2), argv + argc);
  torch::set_num_threads(kThreads);
  init();
  nlohmann::json found;
  for (const auto& [operation, shapes] : all) {
    if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), operation) == chosen.end()) continue;
    for (const auto& [shape, make] : shapes) found[operation][shape] = compare(make, rounds);
  }
  std::cout << found.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::run(argc, argv); }
