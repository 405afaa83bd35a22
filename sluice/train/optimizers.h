// Optimizers by name.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "sluice/train/options.h"

namespace sluice::train {

const std::vector<std::string>& optimizer_names();
// Throws sluice::Error (kNotFound) with the nearest name for an unknown one.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainOptions& options,
                                                        const std::vector<torch::Tensor>& parameters);
void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);

}  // namespace sluice::train
