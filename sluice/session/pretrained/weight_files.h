// The weights in a folder as transformers' save_pretrained writes it.
#pragma once

#include <string>

#include "sluice/base/result.h"
#include "sluice/session/tensor_file.h"

namespace sluice::sessions {

// Whether the folder has model.safetensors or model.safetensors.index.json.
bool has_weight_files(const std::string& folder);
// All tensors: of model.safetensors, or of the files that model.safetensors.index.json names. A tensor that
// the index promises and its file lacks is an error, and so is one that two files have.
base::Result<NamedTensors> read_weight_files(const std::string& folder);

}  // namespace sluice::sessions
