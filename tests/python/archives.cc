// A small regression trained with each of LibTorch's optimizers, over archives: archives_test.sh lets
// Python's torch train the same in turns, from the same files.
//   sluice_archives STEPS FROM TO   FROM and TO have a folder for each optimizer, with model.pt, optimizer.pt
//                                   (torch::save) and weight.pt (torch::pickle_save); FROM "" begins at the
//                                   start.
#include <torch/torch.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "tests/common/under_test.h"

namespace {

namespace optim = torch::optim;
using Parameters = std::vector<torch::Tensor>;
using Optimizer = std::unique_ptr<optim::Optimizer>;

template <typename Kind, typename Options>
std::function<Optimizer(Parameters)> made(Options options) {
  return [options](Parameters parameters) { return std::make_unique<Kind>(std::move(parameters), options); };
}

// The same numbers as in archives_oracle.py.
const std::map<std::string, std::function<Optimizer(Parameters)>> kOptimizers = {
    {"sgd", made<optim::SGD>(optim::SGDOptions(0.05).momentum(0.9).nesterov(true).weight_decay(0.01))},
    {"adam", made<optim::Adam>(optim::AdamOptions(0.02).amsgrad(true).weight_decay(0.01))},
    {"adamw", made<optim::AdamW>(optim::AdamWOptions(0.02).weight_decay(0.1))},
    {"rmsprop", made<optim::RMSprop>(optim::RMSpropOptions(0.01).momentum(0.5).centered(true))},
    {"adagrad", made<optim::Adagrad>(optim::AdagradOptions(0.1).lr_decay(0.01))},
    {"lbfgs", made<optim::LBFGS>(optim::LBFGSOptions(0.2).max_iter(4).history_size(20))},
};

torch::Tensor ramp(at::IntArrayRef sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return (torch::arange(count, torch::kFloat).mul(0.37).sin()).reshape(sizes);
}

std::vector<char> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void train(const std::function<Optimizer(Parameters)>& make, int steps, const std::string& from,
           const std::string& to) {
  const torch::Device device = sluice::tests::device();
  torch::nn::Linear model(4, 3);
  {
    torch::NoGradGuard guard;
    model->weight.copy_(ramp({3, 4}));
    model->bias.copy_(ramp({3}));
  }
  model->to(device);
  const Optimizer optimizer = make(model->parameters());
  const torch::Tensor x = ramp({8, 4}).to(device), y = ramp({8, 3}).mul(0.5).to(device);
  const auto closure = [&] {
    optimizer->zero_grad();
    torch::Tensor loss = torch::mse_loss(model->forward(x), y);
    loss.backward();
    return loss;
  };
  if (!from.empty()) {
    torch::load(model, from + "/model.pt");
    torch::load(*optimizer, from + "/optimizer.pt");
    const torch::Tensor weight = torch::pickle_load(bytes_of(from + "/weight.pt")).toTensor();
    if (!torch::equal(weight.cpu(), model->weight.cpu()))
      throw std::runtime_error("weight.pt and model.pt differ");
  }
  for (int step = 0; step < steps; ++step) (void)optimizer->step(closure);
  torch::save(model, to + "/model.pt");
  torch::save(*optimizer, to + "/optimizer.pt");
  const std::vector<char> pickle = torch::pickle_save(model->weight.detach());
  std::ofstream(to + "/weight.pt", std::ios::binary)
      .write(pickle.data(), static_cast<std::streamsize>(pickle.size()));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) throw std::runtime_error("usage: sluice_archives STEPS FROM TO");
  const std::string from = argv[2], to = argv[3];
  sluice::tests::start("xla");
  for (const auto& [name, make] : kOptimizers) {
    std::filesystem::create_directories(to + "/" + name);
    train(make, std::stoi(argv[1]), from.empty() ? "" : from + "/" + name, to + "/" + name);
  }
  sluice::tests::finish();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "sluice_archives: %s\n", error.what());
  return 1;
}
