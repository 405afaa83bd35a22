// What a run has achieved: the result that it returns, and its last lines.
#pragma once

#include "sluice/metrics/metrics.h"
#include "sluice/train/checkpoints/checkpoint_keeper.h"
#include "sluice/train/checkpoints/log_folder.h"
#include "sluice/train/options.h"
#include "sluice/train/report/run_log.h"
#include "sluice/train/run/run_setup.h"
#include "sluice/train/run/run_state.h"

namespace sluice::train {

// Returns the result up to now. `tested`: the values of the last test; `loss`: of the last logged step.
TrainResult outcome(const RunSetup& given, const RunState& state, const metrics::Values& tested, double loss);
// Prints the last lines of a run that was not interrupted. Sets the exit status of `result`.
void announce_outcome(const RunSetup& given, const RunState& state, const LogFolder& folder,
                      const CheckpointKeeper& checkpoints, TrainResult& result, RunLog& log);

}  // namespace sluice::train
