// What `sluice train` does with checked options.
#pragma once

#include "sluice/train/options.h"
#include "sluice/train/run/run_setup.h"

namespace sluice::train {

// Trains the task of checked options, with these callbacks in addition to the options' own. trainer.cc
TrainResult train_task(const TrainOptions& options, const Callbacks& callbacks);
// Instead of a training: tries batch sizes, and prints the suggestion. batch_size_finder.cc
TrainResult sweep_batch_sizes(const TrainOptions& options);

}  // namespace sluice::train
