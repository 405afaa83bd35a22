// What a model is made of, as a table.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>

#include "sluice/base/export.h"
#include "sluice/stablehlo/layer_work.h"

SLUICE_API_BEGIN

namespace sluice::train {

// A row for each module down to so many levels below the model, which is level 0: its name, its type, the
// elements of its parameters and of those that are trained, and the parameters' bytes. A parameter that
// several modules have counts where it comes first. Parameters that lie above the last level, and in none of
// its modules, have a row of their own.
std::string model_summary(const torch::nn::Module& model, int64_t levels = 1);

// Also what each module computes in its forward and backward passes (FLOPs of products and convolutions; the
// optimizer's count with the backward pass) and the bytes of what it made of all that is alive when most is.
// `work` has layers by the names that they have in the model; what it has of other layers, or of none, stands
// in a row of its own.
std::string model_summary(const torch::nn::Module& model, int64_t levels, const stablehlo::Work& work);

}  // namespace sluice::train

SLUICE_API_END
