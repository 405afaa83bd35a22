// The parts of a run, connected.
#pragma once

#include <memory>
#include <optional>

#include "sluice/train/checkpoints/checkpoint_keeper.h"
#include "sluice/train/checkpoints/log_folder.h"
#include "sluice/train/checkpoints/run_start.h"
#include "sluice/train/evaluation/evaluate.h"
#include "sluice/train/loop/run_view.h"
#include "sluice/train/loop/step_runner.h"
#include "sluice/train/loop/test_runner.h"
#include "sluice/train/optimizers/optimizer_set.h"
#include "sluice/train/report/epoch_report.h"
#include "sluice/train/report/run_log.h"
#include "sluice/train/report/step_report.h"
#include "sluice/train/run/callback_list.h"
#include "sluice/train/run/run_limits.h"
#include "sluice/train/run/run_plan.h"
#include "sluice/train/run/run_setup.h"
#include "sluice/train/run/run_state.h"
#include "sluice/train/run/signals.h"
#include "sluice/train/run/test_clock.h"

namespace sluice::train {

// Each part refers to parts before it. Errors of the constructor are thrown. Threads: the session's.
struct RunParts {
  explicit RunParts(RunSetup setup);
  ~RunParts();
  RunParts(const RunParts&) = delete;
  RunParts& operator=(const RunParts&) = delete;

  const std::shared_ptr<TestClock> test_clock;  // a callback of the run; null without --test-every-minutes
  const RunSetup given;
  std::optional<SignalGuard> signals{std::in_place};
  const RunPlan plan;
  RunState state;
  RunLimits limits;
  LogFolder folder;
  RunLog log;
  ShapeNames shapes;
  RunView view;
  CallbackList callbacks;
  OptimizerSet optimizers;
  RunStart start;
  CheckpointKeeper checkpoints;
  TestRunner tests;
  EpochReport epoch;
  StepReport report;
  StepRunner steps;
};

}  // namespace sluice::train
