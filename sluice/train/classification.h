// The steps of a classification: cross-entropy, accuracy, and the metrics that the options name.
#pragma once

#include <functional>

#include "sluice/train/options.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// `logits`: of a batch with a label for each row, [N, classes]. `options` must outlive the steps. The
// monitored value is "accuracy".
Steps classification(const TrainOptions& options, std::function<torch::Tensor(const Batch&)> logits);
// Of images, which `forward` makes logits of.
Steps image_classification(const TrainOptions& options, std::function<torch::Tensor(torch::Tensor)> forward);

}  // namespace sluice::train
