#include "sluice/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::train {

base::Status check(const ScheduleOptions& options) {
  if (!(options.lr >= 0))
    return base::fail(Code::kInvalidArgument, "the learning rate must be 0 or more, not ", options.lr);
  if (!(options.divisor > 0) || !(options.every_epochs > 0))
    return base::fail(Code::kInvalidArgument,
                      "the learning rate's divisor and its interval in epochs must be above 0, not ",
                      options.divisor, " and ", options.every_epochs);
  return {};
}

double learning_rate(const ScheduleOptions& options, int64_t step) {
  double warmup_epochs = options.warmup_epochs;
  if (warmup_epochs < 0) warmup_epochs = options.kind == LrSchedule::kWarmupAndExponentialDecay ? 0.9 : 0;
  const double warmup = warmup_epochs * options.steps_per_epoch;
  const double at = static_cast<double>(step);
  if (at < warmup) return options.lr * at / warmup;
  if (options.kind == LrSchedule::kConstant) return options.lr;
  if (options.kind == LrSchedule::kCosine) {
    const double total = options.epochs * options.steps_per_epoch;
    const double part = total > warmup ? std::min(1.0, (at - warmup) / (total - warmup)) : 1.0;
    return options.min_lr + (options.lr - options.min_lr) * 0.5 * (1 + std::cos(std::numbers::pi * part));
  }
  const double periods = std::floor(at / options.steps_per_epoch / options.every_epochs);
  return std::max(options.min_lr, options.lr / std::pow(options.divisor, periods));
}

}  // namespace sluice::train
