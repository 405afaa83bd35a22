// The options of the size of a batch and of the length of a run.
#pragma once

#include <cstdint>

#include "sluice/base/export.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct LengthSection {
  int64_t batch_size = 128;       // per replica
  int64_t global_batch_size = 0;  // of all replicas and accumulated batches; above 0 it takes precedence
  int64_t test_batch_size = 0;    // per replica; 0: as in training
  int64_t accumulate = 1;         // batches for one update
  int64_t epochs = 18;
  int64_t steps_per_epoch = 0;  // 0: the whole training set
  int64_t max_steps = 0;        // updates of the run; 0: all of its epochs
  // For token files: the update that reaches this number of trained tokens is the last one; 0: no limit.
  int64_t max_tokens = 0;
  double max_seconds = 0;  // of the run, including the parts before a resume; 0: no limit
};

}  // namespace sluice::train

SLUICE_API_END
