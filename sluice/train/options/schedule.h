// The options of the learning rate's schedule (train/schedule.h).
#pragma once

#include <cstdint>

#include "sluice/base/export.h"
#include "sluice/train/choices.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct ScheduleSection {
  LrSchedule lr_schedule = LrSchedule::kCosine;
  double warmup_epochs = -1;  // -1: the schedule's own
  int64_t warmup_steps = 0;   // instead of warmup_epochs
  int64_t warmup_tokens = 0;  // likewise, for token files: the update that reaches them ends the warm-up
  double decay_epochs = -1;   // of kWsd; -1: a tenth of the run
  int64_t decay_steps = 0;    // instead of decay_epochs
  int64_t decay_tokens = 0;   // likewise, for token files: the last tokens of the run
  double lr_every_epochs = 20;
  double lr_divisor = 5;
  double min_lr = 0;
};

}  // namespace sluice::train

SLUICE_API_END
