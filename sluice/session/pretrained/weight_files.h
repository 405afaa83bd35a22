// The weights in a folder, as transformers' save_pretrained writes them.
#pragma once

#include <string>

#include "sluice/base/result.h"
#include "sluice/session/files/tensor_file.h"

namespace sluice::sessions {

// Returns the path of the first of these that the folder has: model.safetensors,
// model.safetensors.index.json, pytorch_model.bin, pytorch_model.bin.index.json; "" if it has none.
std::string find_weight_files(const std::string& folder);
// Reads all tensors from the one file, or from the files that the index names. It is an error if a file lacks
// a tensor that the index promises, or if two files have the same one. kNotFound for a folder without such
// files.
base::Result<NamedTensors> read_weight_files(const std::string& folder);

}  // namespace sluice::sessions
