// The confusion matrix of a test, as a file.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::train {

// The file has the whole matrix up to this number of classes; above it, this number of pairs of a label and
// a wrong answer, the most frequent ones first.
constexpr int64_t kMatrixClasses = 1024, kConfusedPairs = 1000;

// Replaces FOLDER/confusion.json. `matrix`: int64 [C, C] on the host, dense or sparse, a row for each label,
// a column for each answer. `classes`: their names; the file leaves them out if there are not C of them.
base::Status write_confusion(const std::string& folder, const torch::Tensor& matrix,
                             const std::vector<std::string>& classes, int64_t epoch, int64_t step);
// Returns a line that says why the file has pairs; "" if it has the matrix.
std::string confusion_note(const torch::Tensor& matrix);

}  // namespace sluice::train
