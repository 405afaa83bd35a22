// Recurrent layers and their gradients, on the device beside LibTorch eager on the same cores.
//
//   bench_recurrent [rounds [layer [steps]]]
//
// Prints JSON: for each layer and shape (steps x batch x features, hidden) both medians in milliseconds of
// rounds in turns, eager's divided by the device's, and how long the first run took, which compiles.
// layer: lstm, gru, rnn_tanh or rnn_relu alone. steps: what the shapes begin with, 28x128 for example.
#include <torch/torch.h>

#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/against_eager.h"
#include "sluice/base/text/join.h"
#include "sluice/device/device.h"

namespace sluice::bench {
namespace {

struct Shape {
  int64_t steps, batch, features, hidden;
  std::string text() const { return base::str(steps, "x", batch, "x", features, ", hidden ", hidden); }
};

const std::vector<Shape> kShapes = {
    {28, 8, 28, 64},     {28, 32, 28, 128},  {28, 128, 28, 128},  {100, 8, 64, 128}, {50, 32, 128, 256},
    {100, 32, 256, 256}, {100, 8, 256, 512}, {28, 128, 256, 512}, {100, 32, 64, 64},
};

int64_t gates_of(const std::string& layer) { return layer == "lstm" ? 4 : layer == "gru" ? 3 : 1; }

MakeCase recurrent(const std::string& layer, const Shape& s) {
  return [layer, s](torch::Device device) {
    const int64_t rows = gates_of(layer) * s.hidden;
    Case made;
    made.parameters = {random_parameter({s.steps, s.batch, s.features}, device)};
    for (const std::vector<int64_t>& dims :
         std::vector<std::vector<int64_t>>{{rows, s.features}, {rows, s.hidden}, {rows}, {rows}})
      made.parameters.push_back((torch::randn(dims) * 0.1).to(device).requires_grad_());
    const Tensor state = torch::zeros({1, s.batch, s.hidden}).to(device);
    made.operation = [layer, state, p = made.parameters]() -> Tensor {
      const std::vector<Tensor> weights(p.begin() + 1, p.end());
      if (layer == "lstm")
        return std::get<0>(torch::lstm(p[0], {state, state}, weights, true, 1, 0, true, false, false));
      const auto with = [&](auto&& function) {
        return std::get<0>(function(p[0], state, weights, true, 1, 0.0, true, false, false));
      };
      if (layer == "gru") return with([](auto&&... a) { return torch::gru(a...); });
      if (layer == "rnn_tanh") return with([](auto&&... a) { return torch::rnn_tanh(a...); });
      return with([](auto&&... a) { return torch::rnn_relu(a...); });
    };
    return made;
  };
}

int run(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  const std::string only = argc > 2 ? argv[2] : "";
  const std::string steps = argc > 3 ? argv[3] : "";
  torch::set_num_threads(kThreads);
  init();
  nlohmann::json found;
  for (const char* layer : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    if (!only.empty() && only != layer) continue;
    for (const Shape& shape : kShapes) {
      if (!shape.text().starts_with(steps)) continue;
      found[layer][shape.text()] =
          compare(recurrent(layer, shape), {.count = rounds, .together = 1, .seconds = 10});
    }
  }
  std::cout << found.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::run(argc, argv); }
