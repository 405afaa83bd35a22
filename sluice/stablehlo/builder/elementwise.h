// Which operations compute each element from the elements at the same place.
#pragma once

#include "sluice/stablehlo/operation.h"

namespace sluice::stablehlo {

// Returns whether each element of the result depends only on the elements of the operands at the same place,
// apart from operands without dimensions (a predicate of select, a limit of clamp). The names are those of
// StableHLO's specification; an operation that changes its elements' width is not among them.
bool is_elementwise(const Operation& op);

}  // namespace sluice::stablehlo
