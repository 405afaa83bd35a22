#include "sluice/train/run/run_length.h"

#include <algorithm>
#include <cmath>

#include "sluice/base/text/join.h"

namespace sluice::train {
namespace {

constexpr int64_t kMaxSteps = int64_t{1} << 60;  // far below the limit of int64_t
constexpr int64_t kPlayedSamples = 20'000'000, kPlayedEpochs = 10'000;

}  // namespace

RunLength run_length(const Input& train, const TrainOptions& options) {
  RunLength length;
  if (options.epochs == 0) {
    length.min_steps = length.max_steps = train.updates(0);
    length.steps_per_epoch = static_cast<double>(length.max_steps);
    return length;
  }
  const bool alike = train.epochs_are_alike() || options.overfit_batches > 0;
  const int64_t wanted = alike ? 1 : kPlayedSamples / std::max<int64_t>(train.samples(), 1);
  const int64_t played = std::min(options.epochs, std::clamp<int64_t>(wanted, 1, kPlayedEpochs));
  for (int64_t epoch = 0; epoch < played; ++epoch) {
    const int64_t steps = train.updates(epoch);
    length.min_steps = epoch == 0 ? steps : std::min(length.min_steps, steps);
    length.max_steps = std::max(length.max_steps, steps);
    length.steps += steps;
    if (steps == 0) length.empty.push_back(epoch);
  }
  length.steps_per_epoch = static_cast<double>(length.steps) / static_cast<double>(played);
  if (played == options.epochs) return length;
  const double all = length.steps_per_epoch * static_cast<double>(options.epochs);
  length.steps = all < static_cast<double>(kMaxSteps) ? std::llround(all) : kMaxSteps;
  return length;
}

std::string text_of(const RunLength& length) {
  return length.min_steps == length.max_steps
             ? base::str(length.max_steps, " steps an epoch")
             : base::str(length.min_steps, " to ", length.max_steps, " steps an epoch");
}

}  // namespace sluice::train
