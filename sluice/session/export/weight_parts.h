// The files into which transformers divides weights. Internal to this room.
#pragma once

#include <string>
#include <vector>

#include "sluice/session/files/safetensors_header.h"

namespace sluice::sessions {

// A file, and the places of its tensors in the list of all of them.
struct WeightPart {
  std::string file;
  std::vector<size_t> tensors = {};
};

// Divides tensors as huggingface_hub does: in order, with at most `part_bytes` of tensors in a file, and a
// file of its own for a larger tensor. One file is called model.safetensors, several
// model-0000I-of-0000N.safetensors. At least one.
std::vector<WeightPart> divide_weights(const std::vector<SafetensorsEntry>& tensors, uint64_t part_bytes);

// Returns the text of model.safetensors.index.json. Tensors have names in UTF-8.
std::string weight_index_text(const std::vector<WeightPart>& parts,
                              const std::vector<SafetensorsEntry>& tensors);

// Returns whether a file of this name in a folder would be, or hide, weights: what transformers and Sluice
// look for, and the files of a checkpoint.
bool is_weight_file(const std::string& name);

}  // namespace sluice::sessions
