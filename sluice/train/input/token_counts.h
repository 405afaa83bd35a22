// Converts options that count tokens to updates.
#pragma once

#include "sluice/train/input/input.h"
#include "sluice/train/options.h"

namespace sluice::train {

// The tokens of each update are known before the run. With max_tokens, max_steps becomes the number of the
// update that reaches them; with warmup_tokens, so does warmup_steps. With decay_tokens, decay_steps becomes
// the number of updates after the first one that leaves at most this number of tokens. Without these options
// nothing changes. Throws kInvalidArgument if the set has no token files, or if the run has fewer tokens than
// an option.
void settle_tokens(const Input& train, TrainOptions& options);

}  // namespace sluice::train
