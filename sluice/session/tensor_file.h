// Files of named tensors: safetensors, and the files of Python's torch.save.
//
// Tensors are on the CPU. Element types: f64, f32, f16, bf16, complex of two f64, f32 or f16, i64, i32, i16,
// i8, u64, u32, u16, u8, bool, and of the float8 e4m3fn, e4m3fnuz, e5m2, e5m2fnuz and e8m0fnu.
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
// and shape against its bytes; two tensors of one name are an error. The format has complex numbers of two
// f32 alone: those of two f64 or f16 are written as pairs of real numbers, which the metadata's entry
// "sluice.complex" lists, and read as what they were. Elements of 4 and 6 bits are an error.
base::Status write_safetensors(const std::string& path, const NamedTensors& tensors,
                               const std::map<std::string, std::string>& metadata = {{"format", "pt"}});
base::Result<NamedTensors> read_safetensors(const std::string& path);

// What Python's torch.load(path, weights_only=True) reads as a dict from names to tensors. kUnimplemented
// for the unsigned integers beyond u8, float8 and complex numbers of two f16.
base::Status write_torch_file(const std::string& path, const NamedTensors& tensors);
// Reads what Python's torch.save(model.state_dict(), path) writes, or a dict that holds such a dict under
// "model_state_dict", "state_dict" or "model": the zip files of today and those of before PyTorch 1.6. Only
// tensors, numbers, strings and containers are understood: a file that asks for any other class or function
// is refused by its name, and nothing of it is run.
base::Result<NamedTensors> read_torch_file(const std::string& path);

// A torch file when the name ends in .pt, .pth or .bin, else safetensors.
base::Status write_tensors(const std::string& path, const NamedTensors& tensors);
// Either kind, told apart by its first bytes.
base::Result<NamedTensors> read_tensors(const std::string& path);

}  // namespace sluice::sessions
