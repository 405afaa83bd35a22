// The number of updates of a run, which its learning rates depend on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/train/input/input.h"

namespace sluice::train {

// The length of the options' epochs, before --max-steps. Epochs may differ: packed rows and batches by length
// depend on the order of an epoch, and a remainder may be carried over.
struct RunLength {
  int64_t steps = 0;                     // of all epochs together, at most 2⁶⁰
  double steps_per_epoch = 0;            // the mean over the epochs
  int64_t min_steps = 0, max_steps = 0;  // of an epoch
  std::vector<int64_t> empty;            // epochs without a step, from 0
};

// Runs through the epochs of a set whose epochs may differ, up to some 20 million samples (two seconds);
// later epochs are assumed to have the mean length of these.
RunLength run_length(const Input& train, const TrainOptions& options);

// Returns "313 steps an epoch" or "12 to 14 steps an epoch".
std::string text_of(const RunLength& length);

}  // namespace sluice::train
