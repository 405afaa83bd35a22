// Element-wise combination of arrays in host memory.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "sluice/stablehlo/type.h"

namespace sluice::collectives {

enum class Reduction { kSum, kMax, kMin };

// Parses "sum", "max" or "min"; nothing for any other text.
std::optional<Reduction> reduction_named(std::string_view name);
const char* reduction_name(Reduction reduction);

// Computes every output[k] = inputs[0][k] ∘ inputs[1][k] ∘ …, from left to right, for k in [0, elements). An
// output may be one of the inputs (the same address), else they must not overlap. There is at least one
// input. f16 and bf16 are combined in f32 and rounded once, to nearest even; integers wrap around; a NaN
// wins; for predicates, sum and max are "or", min is "and".
void reduce(stablehlo::DType dtype, Reduction reduction, std::span<const void* const> inputs,
            std::span<void* const> outputs, size_t elements);

}  // namespace sluice::collectives
