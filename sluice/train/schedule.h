// Learning rates over the steps of a run. Plain arithmetic: the same step always has the same rate.
#pragma once

#include <cstdint>

#include "sluice/base/result.h"
#include "sluice/train/choices.h"

namespace sluice::train {

struct ScheduleOptions {
  LrSchedule kind = LrSchedule::kConstant;
  double lr = 0.1;
  double warmup_epochs = -1;  // linear from 0; -1: none (0.9 for WarmupAndExponentialDecay)
  double every_epochs = 20;
  double divisor = 5;
  double min_lr = 0;
  double epochs = 1;
  double steps_per_epoch = 1;  // above 0
};

// An error that says which number is senseless.
base::Status check(const ScheduleOptions& options);
// The rate for optimizer step `step`, counted from 0 over the whole run.
double learning_rate(const ScheduleOptions& options, int64_t step);

}  // namespace sluice::train
