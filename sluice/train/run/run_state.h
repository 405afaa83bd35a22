// How far a run has come.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/base/clock.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/train/run/run_plan.h"
#include "sluice/train/run/run_setup.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// The parts of a run share one state. Threads: the session's.
struct RunState {
  explicit RunState(const RunSetup& setup) : given(setup) {
    progress.model = setup.options.model;
    progress.monitor = setup.steps.monitor.name;
    progress.config = setup.options.config;
  }

  // The epoch of the data that the next step uses, and the updates of this whole epoch.
  int64_t data_epoch() const { return given.data_epoch(progress.epoch); }
  int64_t epoch_steps() const { return given.train.updates(data_epoch()); }
  // The number of batches of this epoch that the run has trained on.
  int64_t batches_done() const { return given.train.batches_of(data_epoch(), progress.batch); }
  // The number, from 1, of the epoch that the last step was in.
  int64_t shown_epoch() const { return progress.epoch + (progress.batch > 0 ? 1 : 0); }
  // The seconds of the whole run, earlier parts included, until a time of the monotonic clock.
  double seconds(double now = base::monotonic_seconds()) const { return earlier_seconds + now - started; }
  bool wants_stop() const { return !stop_reason.empty(); }

  const RunSetup& given;
  sessions::Progress progress;
  std::string stop_reason;    // of the first callback that asked to stop; "": none did
  bool ends_here = false;     // the next checkpoint is the last one
  bool stopping = false;      // by a signal: the rest must be fast
  int64_t first_step = 0;     // the first step of this part of the run
  std::string restored_from;  // the name in messages of the checkpoint that the run continues from
  double started = base::monotonic_seconds();
  double earlier_seconds = 0;  // of the run's parts before this one
};

// The place of the next step.
RunPlace place_of(const RunState& state, const RunPlan& plan);

}  // namespace sluice::train
