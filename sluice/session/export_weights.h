// Weights from one kind of file to another.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::sessions {

struct ExportReport {
  int64_t tensors = 0;
  int64_t bytes = 0;  // of the tensors
};

// `from`: what read_weights takes (weights.h). `to`: .pt, .pth or .bin for Python's
// torch.load(weights_only=True), anything else for safetensors; also objects. Throws sluice::Error.
ExportReport export_weights(const std::string& from, const std::string& to);

}  // namespace sluice::sessions
