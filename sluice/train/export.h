// Weights from one kind of file to another.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::train {

struct ExportReport {
  int64_t tensors = 0;
  int64_t bytes = 0;  // of the tensors
};

// `from`: a checkpoint folder, or a file of weights that sluice::load reads. `to`: .pt, .pth or .bin for
// Python's torch.load(weights_only=True), anything else for safetensors. Throws sluice::Error.
ExportReport export_weights(const std::string& from, const std::string& to);

}  // namespace sluice::train
