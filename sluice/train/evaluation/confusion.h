// The confusion matrix of a test, as a file.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::train {

// Replaces FOLDER/confusion.json. `matrix`: int64 [C, C] on the host, a row for each label, a column for each
// answer. `classes`: their names; empty if they are unknown.
base::Status write_confusion(const std::string& folder, const torch::Tensor& matrix,
                             const std::vector<std::string>& classes, int64_t epoch, int64_t step);

}  // namespace sluice::train
