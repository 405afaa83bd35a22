#include <ATen/ATen.h>

#include <fstream>

#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"
#include "sluice/session/files/safetensors_header.h"
#include "sluice/session/files/tensor_file.h"

namespace sluice::sessions {
namespace safetensors_detail {

const char* name_of(at::ScalarType type) { return safetensors_type(type); }

// Converts the tensor to the form in which the file holds it.
at::Tensor to_real(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().resolve_conj().resolve_neg().contiguous();
  return name_of(dense.scalar_type()) == nullptr && dense.is_complex() ? at::view_as_real(dense) : dense;
}

}  // namespace safetensors_detail

base::Status write_safetensors(const std::string& path, const NamedTensors& tensors,
                               const std::map<std::string, std::string>& metadata) {
  namespace detail = safetensors_detail;
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, tensor] : tensors)
    entries.push_back({name, tensor.scalar_type(), tensor.sizes().vec()});
  SLUICE_TRY(const std::string start, safetensors_start(path, entries, metadata));
  SLUICE_TRY(auto file, base::AtomicFile::create(path));
  SLUICE_OK(file.write(start));
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor dense = detail::to_real(tensor);
    SLUICE_OK(file.write(dense.const_data_ptr(), dense.nbytes()));
  }
  return file.commit();
}

std::string element_name(at::ScalarType type) {
  if (type == at::kComplexDouble) return "C128";
  if (type == at::kComplexHalf) return "C32";
  const char* const name = safetensors_detail::name_of(type);
  return name == nullptr ? "" : name;
}

at::ScalarType element_type(const std::string& name) {
  for (int i = 0; i < static_cast<int>(at::ScalarType::NumOptions); ++i)
    if (const auto type = static_cast<at::ScalarType>(i); !name.empty() && element_name(type) == name)
      return type;
  return at::ScalarType::Undefined;
}

base::Result<NamedTensors> read_safetensors(const std::string& path) {
  SLUICE_TRY(const uint64_t size, base::file_size(path));
  std::ifstream in(path, std::ios::binary);
  std::string text(kHeaderLengthBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in) text.clear();
  SLUICE_TRY(const uint64_t length, safetensors_header_length(path, text, size));
  text.assign(length, '\0');
  in.read(text.data(), static_cast<std::streamsize>(length));
  SLUICE_TRY(const auto entries, parse_safetensors_header(path, text, size - kHeaderLengthBytes - length));
  NamedTensors result;
  for (const auto& entry : entries) {
    at::Tensor tensor = at::empty(entry.sizes, at::TensorOptions(entry.type));
    in.read(static_cast<char*>(tensor.mutable_data_ptr()),
            static_cast<std::streamsize>(entry.end - entry.begin));
    if (!in) return base::fail(Code::kDataLoss, path, ": cannot read tensor ", entry.name);
    result.emplace_back(entry.name, std::move(tensor));
  }
  return result;
}

base::Status write_tensors(const std::string& path, const NamedTensors& tensors) {
  const bool python =
      base::ends_with(path, ".pt") || base::ends_with(path, ".pth") || base::ends_with(path, ".bin");
  return python ? write_torch_file(path, tensors) : write_safetensors(path, tensors);
}

base::Result<NamedTensors> read_tensors(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return base::fail_errno(errno, "open", path);
  char start[9] = {};
  in.read(start, sizeof start);
  return is_torch_file({start, sizeof start}) ? read_torch_file(path) : read_safetensors(path);
}

}  // namespace sluice::sessions
