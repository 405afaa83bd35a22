// The form in which all metrics count a batch.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>

#include "sluice/metrics/definition.h"

namespace sluice::metrics {

// N predictions with their labels.
struct Labelled {
  torch::Tensor output;  // f32 [N, C]
  torch::Tensor target;  // int64 [N]; 0 where the mask is false
  torch::Tensor mask;    // bool [N]
};
// Brings a batch into this form. `classes`: the classes that the output must have; 0: any number. Throws
// kInvalidArgument.
Labelled labelled(const std::string& name, int64_t classes, const Input& input);
// Returns the labels, after a check on the device that each is below `classes`.
torch::Tensor checked(const torch::Tensor& target, int64_t classes);
// Returns the answers, int64 [N]; with one score they are 0 or 1.
torch::Tensor answers(const Labelled& labelled, bool probabilities);

// N numbers and their targets.
struct Measured {
  torch::Tensor output, target;  // f32 [N]
  torch::Tensor mask;            // bool [N]
};
Measured measured(const std::string& name, const Input& input);

}  // namespace sluice::metrics
