// The optimizers of a run.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "sluice/train/options.h"

namespace sluice::train {

// Returns the optimizer that the options name, with their settings. With `no_decay` it has two groups: the
// parameters that decay, and the parameters with fewer than two dimensions.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainOptions& options,
                                                        const std::vector<torch::Tensor>& parameters);

}  // namespace sluice::train
