// Turns loops of the user's C++, which were recorded round by round, into loops of the program. Internal to
// this room.
#pragma once

#include "sluice/patterns/patterns.h"
#include "sluice/stablehlo/rewriter.h"

namespace sluice::patterns {

// Makes a stablehlo.while of each chain of equal rounds (loop_plan.h) for which the rule holds, and changes
// nothing else. Opens all composites if there is such a chain.
void loops(stablehlo::Rewriter& r, const LoopRule& rule);

}  // namespace sluice::patterns
