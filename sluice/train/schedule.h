// Learning rates over the steps of a run. Plain arithmetic: the same step always has the same rate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::train {

struct ScheduleOptions {
  // "constant"; "step": divided by `divisor` every `every_epochs`; "cosine": half a cosine down to min_lr at
  // the end of the run; "WarmupAndExponentialDecay": "step" with a warm-up of 0.9 epochs unless another one
  // is set.
  std::string kind = "constant";
  double lr = 0.1;
  double warmup_epochs = -1;  // linear from 0; -1: none (0.9 for WarmupAndExponentialDecay)
  double every_epochs = 20;
  double divisor = 5;
  double min_lr = 0;
  double epochs = 1;
  double steps_per_epoch = 1;  // above 0
};

// The names that ScheduleOptions::kind takes.
const std::vector<std::string>& schedule_names();
// An error that says what is wrong with the options, with the nearest known name.
base::Status check(const ScheduleOptions& options);
// The rate for optimizer step `step`, counted from 0 over the whole run.
double learning_rate(const ScheduleOptions& options, int64_t step);

}  // namespace sluice::train
