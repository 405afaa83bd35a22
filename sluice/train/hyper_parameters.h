// What distinguishes one run from another, for TensorBoard's HParams page.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/train/options.h"

namespace sluice::train {

using HyperParameter = std::pair<std::string, std::variant<double, std::string, bool>>;

// The recipe of a run: names as in a file of --config, and values. What has no part in it (weight averages
// that are off, the crop of a language model) is left out. `global_batch`: samples of an update.
std::vector<HyperParameter> hyper_parameters(const TrainOptions& options, int64_t global_batch);

}  // namespace sluice::train
