// The weights in a folder as transformers' save_pretrained writes it.
#pragma once

#include <string>

#include "sluice/base/result.h"
#include "sluice/session/tensor_file.h"

namespace sluice::sessions {

// model.safetensors, model.safetensors.index.json, pytorch_model.bin or pytorch_model.bin.index.json: the
// path of the first that the folder has; "" where it has none.
std::string find_weight_files(const std::string& folder);
// All tensors: of the one file, or of the files that the index names. A tensor that the index promises and
// its file lacks is an error, and so is one that two files have. kNotFound for a folder without such files.
base::Result<NamedTensors> read_weight_files(const std::string& folder);

}  // namespace sluice::sessions
