// The options of averages of the weights, and of weights that are not trained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct WeightsSection {
  double ema = 0;  // decay of an average of the weights, which tests measure; 0: none (WeightAverage)
  bool ema_warmup = false;
  int64_t swa_start = 0;  // the epoch, from 1, with which the weights' mean over the epochs begins; 0: none
  // Parameters that are not trained: their names or their modules' names, with * for any letters.
  std::vector<std::string> freeze;
  int64_t unfreeze_epoch = 0;  // the epoch, from 1, from which they are trained; 0: never
};

}  // namespace sluice::train

SLUICE_API_END
