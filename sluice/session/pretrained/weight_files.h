// The weights in a folder, as transformers' save_pretrained writes them.
#pragma once

#include <map>
#include <set>
#include <string>

#include "sluice/base/result.h"
#include "sluice/session/files/tensor_file.h"

namespace sluice::sessions {

// Returns the path of the first of these that the folder has: model.safetensors,
// model.safetensors.index.json, pytorch_model.bin, pytorch_model.bin.index.json; "" if all are missing.
std::string find_weight_files(const std::string& folder);
// The names of the tensors that each file of an index should have. The files are in the index's folder.
using WeightIndex = std::map<std::string, std::set<std::string>>;
// Parses an index; kDataLoss, with its path, if it is not an index or names a file elsewhere.
base::Result<WeightIndex> parse_weight_index(const std::string& path, const std::string& text);
// Reads all tensors from the one file, or from the files that the index names, also as pieces of tensors
// (pieces/piece_index.h). It is an error if a file lacks
// a tensor that the index promises, or if two files have the same one. kNotFound for a folder without such
// files.
base::Result<NamedTensors> read_weight_files(const std::string& folder);

}  // namespace sluice::sessions
