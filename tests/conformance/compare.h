// Comparing a tensor of the device, brought to the CPU, with LibTorch's.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace sluice::conformance {

struct Tolerance {
  double value = 1e-5;  // abs(a - b) <= value * (1 + abs(b))
  bool bits = false;    // equal bit for bit
};

// "" when `found` has the shape and the element type of `expected` (either may be undefined, then both must
// be).
std::string compare_kind(const at::Tensor& expected, const at::Tensor& found);
// "" when `found` lies in its storage as `expected` does: equal strides in the dims of several elements.
std::string compare_strides(const at::Tensor& expected, const at::Tensor& found);
// "" when the values agree; else the first place where they don't, with both values. NaN equals NaN; integers
// and bools must be equal.
std::string compare_values(const at::Tensor& expected, const at::Tensor& found, Tolerance tolerance);
// "" when two random tensors look drawn alike: mean, deviation, minimum and maximum.
std::string compare_statistics(const at::Tensor& expected, const at::Tensor& found);

}  // namespace sluice::conformance
