// Small trainings that run on any device: the same seed gives the same parameters and data everywhere.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/device/support.h"

namespace sluice::tests {

// One training: step(i) does one step on batch i and returns its loss on the device, not read.
struct Training {
  std::vector<torch::Tensor> parameters, buffers;
  std::function<torch::Tensor(int)> step;
  std::shared_ptr<void> owner;  // model and optimizer
};

struct Task {
  std::string name;
  std::function<Training(torch::Device)> make;
  double tolerance = 1e-4;  // of the losses, relative
};

// MLP, convolutional net with BatchNorm, grouped and dilated convolutions, residual net, Transformer with
// Adam, DCGAN with two optimizers.
std::vector<Task> tasks();
Task task_named(const std::string& name);

// An MLP with dropout, SGD with momentum and an exponential average of its weights.
Training dropout_mlp(torch::Device device);

}  // namespace sluice::tests
