// Files of named tensors: safetensors, and the files of Python's torch.save.
//
// Tensors are on the CPU. Element types: f64, f32, f16, bf16, complex of two f64, f32 or f16, i64, i32, i16,
// i8, u64, u32, u16, u8, bool, and the float8 types e4m3fn, e4m3fnuz, e5m2, e5m2fnuz and e8m0fnu.
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
// renamed. `metadata` are free texts in the header. Tensors to write may have any strides; read tensors are
// contiguous and own their memory. Reading checks the header against the file's size and every tensor's type
// and shape against its bytes; two tensors of one name are an error. The format only has complex numbers of
// two f32: complex numbers of two f64 or f16 are written as pairs of real numbers, listed in the metadata's
// entry "sluice.complex", and read as complex again. Elements of 4 and 6 bits are an error.
base::Status write_safetensors(const std::string& path, const NamedTensors& tensors,
                               const std::map<std::string, std::string>& metadata = {{"format", "pt"}});
base::Result<NamedTensors> read_safetensors(const std::string& path);
// Returns the format's name of an element type, such as "BF16", and the type of a name. Complex numbers that
// the format has not are "C128" and "C32". "" and Undefined: the format does not know it.
std::string element_name(at::ScalarType type);
at::ScalarType element_type(const std::string& name);

// Writes a file that Python's torch.load(path, weights_only=True) reads as a dict from names to tensors.
// Fails with kUnimplemented for the unsigned integers beyond u8, float8 and complex numbers of two f16.
base::Status write_torch_file(const std::string& path, const NamedTensors& tensors);
// Reads the files of Python's torch.save(model.state_dict(), path), or of a dict that holds such a dict under
// "model_state_dict", "state_dict" or "model": the current zip files, and the files from before PyTorch 1.6.
// Accepts only tensors, numbers, strings and containers: a file that asks for any other class or function is
// refused with the name of that class or function, and nothing in it is run.
base::Result<NamedTensors> read_torch_file(const std::string& path);

// Writes a torch file if the name ends in .pt, .pth or .bin, else safetensors.
base::Status write_tensors(const std::string& path, const NamedTensors& tensors);
// Reads either kind; the first bytes tell them apart.
base::Result<NamedTensors> read_tensors(const std::string& path);

}  // namespace sluice::sessions
