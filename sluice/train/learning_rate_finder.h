// How high a learning rate can be: a sweep over rates before a training (L. Smith's range test).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct LearningRateSweep {
  double min = 1e-8, max = 1;  // the rates of the first and the last step; between them they rise as powers
  int64_t steps = 100;
  double diverged = 4;  // the sweep ends when the smoothed loss is so many times the smallest one
};

struct LearningRates {
  // Of each step: its learning rate, its loss before the update, and the mean of the losses so far, in which
  // 0.98 of the old mean stays.
  std::vector<double> rates, losses, smoothed;
  // Where the smoothed loss falls fastest from step to step, without the first ten steps and the last one.
  // Nothing when fewer than two finite losses are left.
  std::optional<double> suggestion;
};

// The place in `smoothed` of that suggestion.
std::optional<size_t> steepest_fall(const std::vector<double>& smoothed);

}  // namespace sluice::train

SLUICE_API_END
