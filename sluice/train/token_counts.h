// Options that count tokens, in the updates that they come to.
#pragma once

#include "sluice/train/input.h"
#include "sluice/train/options.h"

namespace sluice::train {

// How many tokens each update takes is known before the run. max_tokens: max_steps becomes the number of the
// update that reaches them. warmup_tokens: warmup_steps does. decay_tokens: decay_steps becomes the number of
// the updates behind the one that leaves no more than these. Nothing changes where none is asked for. Throws
// kInvalidArgument where the set has no token files, or a run has fewer tokens than one of them.
void settle_tokens(const Input& train, TrainOptions& options);

}  // namespace sluice::train
