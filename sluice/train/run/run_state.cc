#include "sluice/train/run/run_state.h"

#include <algorithm>
#include <cmath>

namespace sluice::train {

RunPlace place_of(const RunState& state, const RunPlan& plan) {
  const sessions::Progress& progress = state.progress;
  const ScheduleOptions& schedule = plan.schedule;
  const auto steps = static_cast<int64_t>(std::llround(schedule.epochs * schedule.steps_per_epoch));
  const double part = progress.batch == 0
                          ? 0
                          : static_cast<double>(progress.batch) /
                                static_cast<double>(std::max<int64_t>(state.epoch_steps(), 1));
  return {.step = progress.step,
          .epoch = static_cast<double>(progress.epoch) + part,
          .steps = steps,
          .epochs = schedule.epochs};
}

}  // namespace sluice::train
