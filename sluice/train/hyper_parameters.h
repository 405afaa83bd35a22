// The settings that distinguish one run from another, for TensorBoard's HParams page.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/train/options.h"

namespace sluice::train {

using HyperParameter = std::pair<std::string, std::variant<double, std::string, bool>>;

// Returns the recipe of a run: names as in a file of --config, and values. Leaves out settings that have no
// effect (weight averages that are off, the crop of a language model). `global_batch`: samples of an update.
std::vector<HyperParameter> hyper_parameters(const TrainOptions& options, int64_t global_batch);

}  // namespace sluice::train
