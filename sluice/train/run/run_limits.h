// The limits of a run, and what all of its processes agree to do after the same step.
#pragma once

#include <cstdint>

#include "sluice/train/run/run_setup.h"
#include "sluice/train/run/run_state.h"
#include "sluice/train/run/test_clock.h"

namespace sluice::train {

// The reason why a run ends before its last epoch is over.
enum class Halt { kNone, kSignal, kMaxSteps, kMaxTime, kCallback };

// All processes call each of the agreed_…() functions equally often: after each update.
class RunLimits {
 public:
  // All of them live longer. `test_clock`: null without --test-every-minutes.
  RunLimits(const RunSetup& given, const RunState& state, const TestClock* test_clock);
  // Call it before the first step of this part of the run.
  void begin();
  // Returns kMaxSteps, kMaxTime or kNone.
  Halt reached() const;
  // Whether a signal came or the time is over, and, with several processes, all of them stop here: kSignal,
  // kMaxTime or kNone.
  Halt agreed_halt() const;
  bool agreed_save() const;  // whether --save-minutes are over
  bool agreed_test() const;  // whether --test-every-minutes are over
  // Begins to count --save-minutes again: a checkpoint is being taken.
  void saves();
  // Whether a signal came, and this process may stop in the middle of a test for it. Several processes may
  // not: they would have to agree on the batch.
  bool stops_alone() const;

 private:
  const RunSetup& given_;
  const RunState& state_;
  const TestClock* test_clock_;
  double saved_;          // monotonic seconds of the last checkpoint, or of the start
  int64_t saved_at_ = 0;  // the session's step at that time
};

}  // namespace sluice::train
