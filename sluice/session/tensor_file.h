// Files of named tensors: safetensors, and the zip files of Python's torch.save.
//
// Tensors are on the CPU. Element types: f64, f32, f16, bf16, i64, i32, i16, i8, u8, bool.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::sessions {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Safetensors: 8 bytes little-endian length, a JSON header, the data. Written under a temporary name and
// renamed. `metadata` are free texts that the header carries. Any strides may come in; what is read is
// contiguous and owns its memory. Reading checks the header against the file's size and every tensor's type
// and shape against its bytes.
base::Status write_safetensors(const std::string& path, const NamedTensors& tensors,
                               const std::map<std::string, std::string>& metadata = {{"format", "pt"}});
base::Result<NamedTensors> read_safetensors(const std::string& path);

// What Python's torch.load(path, weights_only=True) reads as a dict from names to tensors.
base::Status write_torch_file(const std::string& path, const NamedTensors& tensors);
// Reads what Python's torch.save(model.state_dict(), path) writes, or a dict that holds such a dict under
// "model_state_dict", "state_dict" or "model". Only tensors, numbers, strings and containers are understood:
// a file that asks for any other class or function is refused by its name, and nothing of it is run.
base::Result<NamedTensors> read_torch_file(const std::string& path);

// A torch file when the name ends in .pt, .pth or .bin, else safetensors.
base::Status write_tensors(const std::string& path, const NamedTensors& tensors);
// Either kind, told apart by its first bytes.
base::Result<NamedTensors> read_tensors(const std::string& path);

}  // namespace sluice::sessions
