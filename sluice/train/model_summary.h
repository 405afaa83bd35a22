// What a model is made of, as a table.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>

#include "sluice/base/export.h"

SLUICE_API_BEGIN

namespace sluice::train {

// A row for each module down to so many levels below the model, which is level 0: its name, its type, the
// elements of its parameters and of those that are trained, and the parameters' bytes. A parameter that
// several modules have counts where it comes first. Parameters that lie above the last level, and in none of
// its modules, have a row of their own.
std::string model_summary(const torch::nn::Module& model, int64_t levels = 1);

}  // namespace sluice::train

SLUICE_API_END
