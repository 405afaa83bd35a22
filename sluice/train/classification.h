// The steps of a classification: cross-entropy, accuracy, and the metrics that the options name.
#pragma once

#include <functional>

#include "sluice/train/options.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// `logits` computes [N, classes] from a batch with a label for each row. `options` must outlive the steps.
// The monitored value is "accuracy".
Steps classification(const TrainOptions& options, std::function<torch::Tensor(const Batch&)> logits);
// The steps for images; `forward` computes their logits.
Steps image_classification(const TrainOptions& options, std::function<torch::Tensor(torch::Tensor)> forward);

}  // namespace sluice::train
