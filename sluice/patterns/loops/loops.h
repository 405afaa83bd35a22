// Turns loops of the user's C++, which were recorded round by round, into loops of the program. Internal to
// this room.
#pragma once

#include "sluice/stablehlo/rewriter.h"

namespace sluice::patterns {

// Makes a stablehlo.while of each chain of at least min_rounds equal rounds (loop_plan.h), and changes
// nothing else. Opens all composites if there is such a chain.
void loops(stablehlo::Rewriter& r, size_t min_rounds);

}  // namespace sluice::patterns
