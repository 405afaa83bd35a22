// The options of runs that try something instead of training to the end.
#pragma once

#include <cstdint>

#include "sluice/base/export.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct TrialsSection {
  int64_t overfit_batches = 0;  // above 0: every epoch is the first N batches of epoch 0
  // Above 0: a trial of one epoch with this number of batches, and a test with the same number, in a log
  // folder that is deleted.
  int64_t fast_dev_run = 0;
  bool find_batch_size = false;  // instead of a training: trials that suggest one (batch_size_finder.h)
  bool find_lr = false;          // instead of a training: a sweep that suggests one (learning_rate_finder.h)
};

}  // namespace sluice::train

SLUICE_API_END
