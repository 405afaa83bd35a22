// One of a model's many layers.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

#include "sluice/device/recompute.h"

namespace sluice::models {

// Returns function(x). With `recompute` its values are not kept, but computed again in the backward pass.
// Everything that the function refers to must live until then, so it takes tensors that are not the module's
// by value.
template <typename Function>
at::Tensor layer(bool recompute, Function function, const at::Tensor& x) {
  return recompute ? checkpoint(std::move(function), x) : function(x);
}

}  // namespace sluice::models
