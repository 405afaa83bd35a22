// A sweep over learning rates before a training, to find how high the rate can be (L. Smith's range test).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct LearningRateSweep {
  double min = 1e-8, max = 1;  // rates of the first and the last step; they rise exponentially
  int64_t steps = 100;
  double diverged = 4;  // the sweep ends when the smoothed loss is this many times its minimum
};

struct LearningRates {
  // For each step: its learning rate, its loss before the update, and the moving mean of the losses so far,
  // which keeps 0.98 of its old value.
  std::vector<double> rates, losses, smoothed;
  // The rate where the smoothed loss falls fastest from step to step, without the first ten steps and the
  // last one. Empty if fewer than two finite losses are left.
  std::optional<double> suggestion;
};

// Returns the index in `smoothed` of the suggestion.
std::optional<size_t> steepest_fall(const std::vector<double>& smoothed);

}  // namespace sluice::train

SLUICE_API_END
