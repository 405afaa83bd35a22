// One training: its epochs, with their tests and checkpoints.
#pragma once

#include <cstdint>
#include <utility>

#include "sluice/train/learning_rate_finder.h"
#include "sluice/train/loop/run_parts.h"
#include "sluice/train/options.h"
#include "sluice/train/run/run_limits.h"
#include "sluice/train/run/run_setup.h"

namespace sluice::train {

// Errors are thrown. Threads: the session's.
class Training final : private RunParts {
 public:
  explicit Training(RunSetup setup) : RunParts(std::move(setup)) {}
  // Trains to the end, or until a signal. Call it once.
  TrainResult operator()();

 private:
  void begin();
  Halt train_epoch();
  // Records the first batches of the test set, for a run whose programs are only compiled
  // (sessions::record_after_steps), and ends the process.
  [[noreturn]] void record_tests();
  // Does what is due after an update: lines, callbacks, a checkpoint, a test. `end`: the number of updates
  // that the epoch ends after.
  Halt finish_step(int64_t end);
  // Moves the state over the update and logs it; returns whether a checkpoint is to be written here.
  bool after_update(int64_t end, bool stop);
  // Reports the epoch, and moves the state to the next one if it is `whole`.
  void end_of_epoch(bool whole);
  void save(bool best);
  void save_within_epoch();
  bool test_within_epoch();  // false: a signal came
  // Finish the work that the checkpoint says is due, at an epoch's end and after an update within one.
  // finish_due() returns false if a signal came.
  bool finish_due();
  Halt finish_due_within_epoch();
  TrainResult end();
  TrainResult stopped();
};

// Instead of a training: trains with rising rates, and restores the weights. learning_rate_finder.cc
LearningRates sweep_learning_rates(RunSetup setup, const LearningRateSweep& sweep);

}  // namespace sluice::train
