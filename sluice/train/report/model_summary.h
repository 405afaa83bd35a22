// A table of a model's modules.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>

#include "sluice/base/export.h"
#include "sluice/stablehlo/layer_work.h"

SLUICE_API_BEGIN

namespace sluice::train {

// Returns a table with a row for each module down to `levels` levels below the model, which is level 0: its
// name, its type, the elements of its parameters and of its trained parameters, and the parameters' bytes. A
// parameter in several modules counts at the first one. Parameters above the last level, and in no module of
// it, have a separate row.
std::string model_summary(const torch::nn::Module& model, int64_t levels = 1);

// Also shows what each module computes in its forward and backward passes (FLOPs of products and
// convolutions; the optimizer's count with the backward pass), and the bytes of the module's values among all
// that are alive at the peak of memory. `work` names layers as the model does; work of other layers, or of
// none, is in a separate row.
std::string model_summary(const torch::nn::Module& model, int64_t levels, const stablehlo::Work& work);

}  // namespace sluice::train

SLUICE_API_END
