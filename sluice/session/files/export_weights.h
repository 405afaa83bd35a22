// The conversion of weights from one kind of file to another.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::sessions {

struct ExportReport {
  int64_t tensors = 0;
  int64_t bytes = 0;  // of the tensors
};

// Converts `from`, which read_weights accepts (weights.h), to `to`: .pt, .pth or .bin for Python's
// torch.load(weights_only=True), any other name for safetensors; `to` may be an object in a bucket. Throws
// sluice::Error.
ExportReport export_weights(const std::string& from, const std::string& to);

}  // namespace sluice::sessions
