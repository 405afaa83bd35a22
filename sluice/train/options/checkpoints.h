// The options of checkpoints.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/base/export.h"
#include "sluice/train/options/values.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct CheckpointSection {
  int64_t save_top_k = 0;   // the number of checkpoints of the best tests, in top-STEP
  int64_t save_steps = 0;   // a checkpoint every N steps of an epoch, and at its end
  double save_minutes = 0;  // a checkpoint after N minutes without one; 0: never
  Resume resume;
  std::string config;  // all options as text, kept in checkpoints
};

}  // namespace sluice::train

SLUICE_API_END
