// What operations note of their results while a program is lowered, for those that come later.
#pragma once

#include <unordered_map>
#include <utility>

#include "sluice/ops/emit.h"

namespace sluice::ops {

// (x - mean) inverse weight + bias; all but x have one element a channel.
struct Normalized {
  Value x, mean, inverse, weight, bias;
};

// A product by a kernel, with its operands as they lie.
struct Product {
  Value a, b;
  bool transposed_a, transposed_b;
  Value bias;  // empty if there is none
};

// The notes of a program while it is lowered, by the values' ids.
struct Fusions {
  // How often the program's operations and results read what operations made.
  std::unordered_map<int32_t, int> readers;
  std::unordered_map<int32_t, Normalized> normalized;
  std::unordered_map<int32_t, std::pair<Value, Value>> sums;
  std::unordered_map<int32_t, Normalized> rectified;  // ReLUs of these
  struct Gated {
    Value gradient;   // before the gate
    Normalized gate;  // it passes where this is above 0
  };
  std::unordered_map<int32_t, Gated> gated;
  std::unordered_map<int32_t, Product> products;
  // Gradients [N, C] that are 0 but for each row's label: what they are there, [N].
  std::unordered_map<int32_t, Value> at_labels;
};

}  // namespace sluice::ops
