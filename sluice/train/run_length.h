// How many updates a run has, which its learning rates depend on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/train/input.h"

namespace sluice::train {

// Of the epochs of the options, before --max-steps. Epochs may differ: packed rows and batches by length
// depend on the order of an epoch, and a remainder may be carried over.
struct RunLength {
  int64_t steps = 0;                     // of all epochs, at most 2⁶⁰
  double steps_per_epoch = 0;            // their mean
  int64_t min_steps = 0, max_steps = 0;  // of an epoch
  std::vector<int64_t> empty;            // epochs without a step, from 0
};

// Plays the epochs of a set whose epochs may differ, up to some 20 million samples (two seconds); what comes
// behind them is taken to be like their mean.
RunLength run_length(const Input& train, const TrainOptions& options);

// "313 steps an epoch", "12 to 14 steps an epoch"
std::string text_of(const RunLength& length);

}  // namespace sluice::train
