// The numbers that constants of a program hold. Internal to this room.
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/stablehlo/rewriter.h"

namespace sluice::patterns {

// Returns the integer that all elements of a constant of integers have; nothing for another operation.
std::optional<int64_t> integer_of(const stablehlo::Operation& op);
// Returns whether v is a constant of zeros, of integers or of floats.
bool is_zeros(const stablehlo::Rewriter& r, stablehlo::Value v);
// Returns whether the operation pads a value with zeros only around it, and does not cut the value.
bool pads_with_zeros(const stablehlo::Rewriter& r, const stablehlo::Operation& op);

}  // namespace sluice::patterns
