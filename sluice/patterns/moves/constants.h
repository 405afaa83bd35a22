// Constants of zeros, and what pads with them. Internal to this room.
#pragma once

#include "sluice/stablehlo/rewriter.h"

namespace sluice::patterns {

// Returns whether v is a constant of zeros, of integers or of floats; -0.0 is not a zero here.
bool is_zeros(const stablehlo::Rewriter& r, stablehlo::Value v);
// Returns whether the operation pads a value with zeros only around it, and does not cut the value.
bool pads_with_zeros(const stablehlo::Rewriter& r, const stablehlo::Operation& op);

}  // namespace sluice::patterns
