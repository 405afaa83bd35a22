// Arrays as LibTorch tensors: the only file of this room that knows LibTorch.
#pragma once

#include <ATen/core/Tensor.h>

#include "sluice/data/array.h"

namespace sluice::data {

// Returns a CPU tensor over the array's own memory, which lives as long as either of them; nothing is copied,
// and a write to one is seen in the other. The memory is 64-byte aligned. An undefined array gives an
// undefined tensor.
at::Tensor to_tensor(const Array& array);

c10::ScalarType scalar_type(ElementType type);

}  // namespace sluice::data
