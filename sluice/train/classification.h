// The steps of a classification of images: cross-entropy, accuracy, and the metrics that the options name.
#pragma once

#include <functional>

#include "sluice/train/options.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// `forward`: images to logits, [N, classes]. `options` must outlive the steps. The monitored value is
// "accuracy".
Steps classification(const TrainOptions& options, std::function<torch::Tensor(torch::Tensor)> forward);

}  // namespace sluice::train
