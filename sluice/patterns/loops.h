// Loops of the user's C++, which were recorded round by round, as loops of the program. Internal to this
// room.
#pragma once

#include "sluice/stablehlo/rewriter.h"

namespace sluice::patterns {

// Makes a stablehlo.while of each chain of so many equal rounds or more (loop_plan.h), and leaves all else as
// it is. Opens all composites where there is such a chain.
void loops(stablehlo::Rewriter& r, size_t min_rounds);

}  // namespace sluice::patterns
