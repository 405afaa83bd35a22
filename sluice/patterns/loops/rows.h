// What is done with the stacks of loops after the loops are made. Internal to this room.
#pragma once

#include "sluice/stablehlo/rewriter.h"

namespace sluice::patterns {

// Replaces a concatenation of `least` or more consecutive rows of a stack by one slice of the stack.
void join_rows(stablehlo::Rewriter& r, size_t least);

// Makes equal concatenations once, and equal conversions of them: the stacks of weights that several loops
// read.
void share_stacks(stablehlo::Rewriter& r);

}  // namespace sluice::patterns
