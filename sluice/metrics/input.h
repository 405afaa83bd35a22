// The batches of all metrics in the one form in which they are counted.
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
// `classes`: that the output must have; 0: any number. Throws kInvalidArgument.
Labelled labelled(const std::string& name, int64_t classes, const Input& input);
// The labels, after the device has looked whether each is below `classes`.
torch::Tensor checked(const torch::Tensor& target, int64_t classes);
// The answers, int64 [N]: for one score 0 or 1.
torch::Tensor answers(const Labelled& labelled, bool probabilities);

// N numbers beside what they should be.
struct Measured {
  torch::Tensor output, target;  // f32 [N]
  torch::Tensor mask;            // bool [N]
};
Measured measured(const std::string& name, const Input& input);

}  // namespace sluice::metrics
