#include "sluice/train/optimizers/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::train {
namespace {

constexpr double kWarmupEpochs = 0.9;    // of kWarmupAndExponentialDecay
constexpr double kDecayPart = 0.1;       // of kWsd
constexpr double kRisingPart = 0.3;      // of kOneCycle, as are the next two
constexpr double kFirstDivisor = 25;     // of lr
constexpr double kLastDivisor = 250000;  // of lr

// Moves from `from` to `to` while `part` increases from 0 to 1.
double on_line(double from, double to, double part) {
  return from + (to - from) * std::clamp(part, 0.0, 1.0);
}
double on_half_cosine(double from, double to, double part) {
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * std::clamp(part, 0.0, 1.0)));
}

// The fraction of the way from `begin` to `end`; 1 if there is no way.
double part_of(double at, double begin, double end) { return end > begin ? (at - begin) / (end - begin) : 1; }

double decay_epochs(const ScheduleOptions& options) {
  return options.decay_epochs < 0 ? kDecayPart * options.epochs : options.decay_epochs;
}

double warmup_epochs(const ScheduleOptions& options) {
  if (options.warmup_epochs >= 0) return options.warmup_epochs;
  if (options.kind == LrSchedule::kWarmupAndExponentialDecay) return kWarmupEpochs;
  if (options.kind == LrSchedule::kOneCycle) return kRisingPart * options.epochs;
  return 0;
}

double one_cycle(const ScheduleOptions& options, double at, double warmup, double total) {
  const double top = std::max(warmup - 1, 0.0);
  if (at <= top) return on_half_cosine(options.lr / kFirstDivisor, options.lr, part_of(at, 0, top));
  const double last = std::max(options.lr / kLastDivisor, options.min_lr);
  return on_half_cosine(options.lr, last, part_of(at, top, total - 1));
}

}  // namespace

base::Status check(const ScheduleOptions& options) {
  if (!(options.lr >= 0))
    return base::fail(Code::kInvalidArgument, "the learning rate must be 0 or more, not ", options.lr);
  if (!(options.divisor > 0) || !(options.every_epochs > 0))
    return base::fail(Code::kInvalidArgument,
                      "the learning rate's divisor and its interval in epochs must be above 0, not ",
                      options.divisor, " and ", options.every_epochs);
  const double warmup = warmup_epochs(options);
  if (options.kind == LrSchedule::kInverseSqrt && warmup <= 0)
    return base::fail(
        Code::kInvalidArgument,
        "the schedule inverse-sqrt is measured by its warm-up: give --warmup-steps, such as 4000");
  if (options.kind == LrSchedule::kWsd)
    return check_wsd_parts(warmup, options.decay_epochs, options.epochs, "epochs");
  return {};
}

base::Status check_wsd_parts(double warmup, double decay, double run, const char* unit) {
  warmup = std::max(warmup, 0.0);
  if (decay < 0) decay = kDecayPart * run;
  if (warmup + decay <= run) return {};
  return base::fail(Code::kInvalidArgument, "--lr-schedule wsd: a warm-up of ", warmup, " and a decay of ",
                    decay, " ", unit, ", together more than the ", run, " ", unit,
                    " of the run: make one of them shorter, or the run longer");
}

double learning_rate(const ScheduleOptions& options, int64_t step) {
  const double warmup = warmup_epochs(options) * options.steps_per_epoch;
  const double total = options.epochs * options.steps_per_epoch;
  const double at = static_cast<double>(step);
  if (options.kind == LrSchedule::kOneCycle) return one_cycle(options, at, warmup, total);
  if (at < warmup) return options.lr * at / warmup;
  switch (options.kind) {
    case LrSchedule::kConstant:
    case LrSchedule::kOneCycle:
      return options.lr;
    case LrSchedule::kCosine:
      return on_half_cosine(options.lr, options.min_lr, part_of(at, warmup, total));
    case LrSchedule::kLinear:
      return on_line(options.lr, options.min_lr, part_of(at, warmup, total));
    case LrSchedule::kInverseSqrt:
      return std::max(options.min_lr, options.lr * std::sqrt(warmup / at));
    case LrSchedule::kWsd:
      return on_line(options.lr, options.min_lr,
                     part_of(at, total - decay_epochs(options) * options.steps_per_epoch, total));
    case LrSchedule::kStep:
    case LrSchedule::kWarmupAndExponentialDecay:
      break;
  }
  const double periods = std::floor(at / options.steps_per_epoch / options.every_epochs);
  return std::max(options.min_lr, options.lr / std::pow(options.divisor, periods));
}

}  // namespace sluice::train
