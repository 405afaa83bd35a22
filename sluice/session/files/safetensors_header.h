// The header of a safetensors file. It comes from elsewhere, so all of it is checked. Internal to this room.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::sessions {

// A file begins with the length of its header: 8 bytes, little-endian.
constexpr uint64_t kHeaderLengthBytes = 8;
// A longer header means that the file is of another kind.
constexpr uint64_t kLargestHeader = 100'000'000;
constexpr const char* kSafetensorsMetadata = "__metadata__";
// The format has no complex numbers of two f64 or f16. They are written as pairs of real numbers (the shape
// ends in 2), and this entry of the metadata lists their names, as a JSON list.
constexpr const char* kSafetensorsPairs = "sluice.complex";

// Returns the format's name of an element type; null if the format does not have it.
const char* safetensors_type(at::ScalarType type);

struct SafetensorsEntry {
  std::string name;
  at::ScalarType type = at::ScalarType::Undefined;
  std::vector<int64_t> sizes;
  uint64_t begin = 0, end = 0;  // bytes, counted from the end of the header; row-major elements
};

// Returns the bytes with which a file of these tensors begins, up to their elements: these follow in the same
// order, row-major and without gaps. The places in `tensors` are ignored. `path` names the file in errors:
// kUnimplemented for an element type that the format does not have, kInvalidArgument for a name that is not
// UTF-8 or that two tensors have.
base::Result<std::string> safetensors_start(const std::string& path,
                                            const std::vector<SafetensorsEntry>& tensors,
                                            const std::map<std::string, std::string>& metadata);

// Returns whether a file that begins with these 9 bytes was written by Python's torch.save.
bool is_torch_file(std::string_view start);
// Returns the length of the header of a file with `file_bytes` bytes that begins with these 8 bytes.
base::Result<uint64_t> safetensors_header_length(const std::string& path, std::string_view start,
                                                 uint64_t file_bytes);
// Returns the tensors, in the order of their bytes. Their bytes fit their types and shapes and fill the file:
// no two overlap, and none leaves it. kDataLoss names the path and the tensor.
base::Result<std::vector<SafetensorsEntry>> parse_safetensors_header(const std::string& path,
                                                                     std::string_view text,
                                                                     uint64_t data_bytes);

}  // namespace sluice::sessions
