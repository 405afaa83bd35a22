// Learning rates over the steps of a run. Plain arithmetic: the same step always has the same rate.
#pragma once

#include <cstdint>

#include "sluice/base/result.h"
#include "sluice/train/choices.h"

namespace sluice::train {

// The run has `epochs` × `steps_per_epoch` steps, and all schedules except kOneCycle begin with a linear
// warm-up from 0. After it, to the end of the run unless stated otherwise:
//   kConstant      lr
//   kStep          lr, divided by `divisor` after every `every_epochs`, counted from the run's start
//   kWarmupAndExponentialDecay  the same, with a warm-up of 0.9 epochs unless another one is set
//   kCosine        half a cosine from lr to min_lr
//   kLinear        a line from lr to min_lr
//   kInverseSqrt   lr · sqrt(warm-up steps / step), at least min_lr; it needs a warm-up (Vaswani et al. 2017,
//                  section 5.3, scaled to have lr at the warm-up's end)
//   kWsd           lr, and in the last `decay_epochs` a line down to min_lr (warm-up, stable, decay:
//                  Hu et al. 2024)
//   kOneCycle      half a cosine from lr / 25 to lr over the warm-up (three tenths of the run unless another
//                  one is set), then half a cosine down to lr / 250,000 or min_lr, whichever is larger:
//                  PyTorch's OneCycleLR with its defaults, but the momentum stays
struct ScheduleOptions {
  LrSchedule kind = LrSchedule::kConstant;
  double lr = 0.1;
  double warmup_epochs = -1;  // -1: the schedule's own, or none
  double every_epochs = 20;
  double divisor = 5;
  double min_lr = 0;
  double decay_epochs = -1;  // -1: a tenth of the run
  double epochs = 1;
  double steps_per_epoch = 1;  // above 0
};

// Fails with an error that says which number is senseless.
base::Status check(const ScheduleOptions& options);
// Checks that a warm-up and a decay of kWsd (below 0: none, and a tenth of the run) fit into the run, all in
// `unit`.
base::Status check_wsd_parts(double warmup, double decay, double run, const char* unit);
// The rate for optimizer step `step`, counted from 0 over the whole run.
double learning_rate(const ScheduleOptions& options, int64_t step);

}  // namespace sluice::train
