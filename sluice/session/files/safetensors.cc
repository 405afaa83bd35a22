#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/formats/unique_json.h"
#include "sluice/base/text/utf8.h"
#include "sluice/session/files/tensor_file.h"

namespace sluice::sessions {
namespace safetensors_detail {

struct TypeName {
  at::ScalarType type;
  const char* name;
};
constexpr TypeName kTypes[] = {
    {at::kDouble, "F64"},
    {at::kFloat, "F32"},
    {at::kHalf, "F16"},
    {at::kBFloat16, "BF16"},
    {at::kComplexFloat, "C64"},
    {at::kLong, "I64"},
    {at::kInt, "I32"},
    {at::kShort, "I16"},
    {at::kChar, "I8"},
    {at::kUInt64, "U64"},
    {at::kUInt32, "U32"},
    {at::kUInt16, "U16"},
    {at::kByte, "U8"},
    {at::kBool, "BOOL"},
    {at::kFloat8_e4m3fn, "F8_E4M3"},
    {at::kFloat8_e4m3fnuz, "F8_E4M3FNUZ"},
    {at::kFloat8_e5m2, "F8_E5M2"},
    {at::kFloat8_e5m2fnuz, "F8_E5M2FNUZ"},
    {at::kFloat8_e8m0fnu, "F8_E8M0"},
};
// The format's packed types: LibTorch has no type for one such element.
constexpr const char* kPacked[] = {"F4", "F6_E2M3", "F6_E3M2"};
// The format has no complex numbers of two f64 or f16. They are written as pairs of real numbers (the shape
// ends in 2), and this entry of the metadata lists their names, as a JSON list.
constexpr const char* kMetadata = "__metadata__";
constexpr const char* kPairs = "sluice.complex";
// A longer header means that the file is of another kind.
constexpr uint64_t kLargestHeader = 100'000'000;

const char* name_of(at::ScalarType type) {
  for (const auto& entry : kTypes)
    if (entry.type == type) return entry.name;
  return nullptr;
}

struct Entry {
  std::string name;
  at::ScalarType type;
  std::vector<int64_t> shape;
  uint64_t begin, end;
};

base::Result<Entry> parse_entry(const std::string& path, const std::string& name,
                                const nlohmann::json& json) {
  auto bad = [&](const auto&... what) {
    return base::fail(Code::kDataLoss, path, ": the header's entry of tensor ", name, " is wrong: ", what...);
  };
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets"))
    return bad("expected dtype, shape and data_offsets");
  Entry entry{name, at::ScalarType::Undefined, {}, 0, 0};
  for (const auto& known : kTypes)
    if (json["dtype"] == known.name) entry.type = known.type;
  if (std::any_of(std::begin(kPacked), std::end(kPacked),
                  [&](auto* packed) { return json["dtype"] == packed; }))
    return bad("element type ", json["dtype"].dump(), " has less than a byte for an element, which is not ",
               "supported: convert the tensor to F8_E4M3 or BF16 where it was made");
  if (entry.type == at::ScalarType::Undefined)
    return bad("element type ", json["dtype"].dump(), " is not supported");
  const auto& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    return bad("data_offsets must be two numbers");
  entry.begin = offsets[0];
  entry.end = offsets[1];
  if (!json["shape"].is_array()) return bad("shape must be a list");
  uint64_t bytes = c10::elementSize(entry.type);
  int64_t stride = 1;  // LibTorch computes the stride even if another size is 0
  for (const auto& size : json["shape"]) {
    if (!size.is_number_unsigned() || size.get<uint64_t>() > (uint64_t{1} << 48))
      return bad("shape must hold sizes");
    entry.shape.push_back(size.get<int64_t>());
    if (__builtin_mul_overflow(bytes, size.get<uint64_t>(), &bytes) ||
        __builtin_mul_overflow(stride, std::max<int64_t>(size.get<int64_t>(), 1), &stride))
      return bad("its size overflows");
  }
  if (entry.end < entry.begin || entry.end - entry.begin != bytes)
    return bad("its type and shape need ", bytes, " bytes, its offsets ", entry.begin, " and ", entry.end,
               " differ");
  return entry;
}

base::Result<std::vector<Entry>> parse_entries(const std::string& path, const nlohmann::json& header,
                                               uint64_t data_bytes) {
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadata) continue;
    SLUICE_TRY(Entry entry, parse_entry(path, name, value));
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
  uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at)
      return base::fail(Code::kDataLoss, path, ": tensor ", entry.name, " starts at byte ", entry.begin,
                        " of the data, expected ", at, " (no holes, no overlaps)");
    at = entry.end;
  }
  if (at != data_bytes)
    return base::fail(Code::kDataLoss, path, ": the header describes ", at, " bytes of data, the file holds ",
                      data_bytes, at > data_bytes ? " (cut off?)" : "");
  return entries;
}

// Returns the names of the tensors that are complex numbers written as pairs.
base::Result<std::set<std::string>> parse_pairs(const std::string& path, const nlohmann::json& header) {
  std::set<std::string> names;
  const auto metadata = header.find(kMetadata);
  if (metadata == header.end() || !metadata->is_object() || !metadata->contains(kPairs)) return names;
  const auto& text = (*metadata)[kPairs];
  const auto list = text.is_string() ? base::parse_json(text.get<std::string>()) : nlohmann::json();
  const bool good = list.is_array() &&
                    std::all_of(list.begin(), list.end(), [](const auto& name) { return name.is_string(); });
  if (!good)
    return base::fail(Code::kDataLoss, path, ": the metadata's ", kPairs, " is not a JSON list of names");
  for (const auto& name : list) names.insert(name.template get<std::string>());
  return names;
}

base::Result<nlohmann::json> parse_header(const std::string& path, const std::string& text) {
  auto header = base::parse_unique_json(text);
  if (!header) return base::fail_at(header, path);
  if (header->is_object()) return header;
  return base::fail(Code::kDataLoss, path, ": not a safetensors file: its header is not a JSON object");
}

// Converts the tensor to the form in which the file holds it.
at::Tensor to_real(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().resolve_conj().resolve_neg().contiguous();
  return name_of(dense.scalar_type()) == nullptr && dense.is_complex() ? at::view_as_real(dense) : dense;
}

base::Result<at::Tensor> to_complex(const std::string& path, const std::string& name,
                                    const at::Tensor& pairs) {
  const bool good = (pairs.scalar_type() == at::kDouble || pairs.scalar_type() == at::kHalf) &&
                    pairs.dim() > 0 && pairs.size(-1) == 2;
  if (good) return at::view_as_complex(pairs);
  return base::fail(Code::kDataLoss, path, ": the metadata's ", kPairs, " names the tensor ", name,
                    ": expected F64 or F16 with a shape that ends in 2, found ", pairs.scalar_type(), " of ",
                    pairs.sizes());
}

}  // namespace safetensors_detail

base::Status write_safetensors(const std::string& path, const NamedTensors& tensors,
                               const std::map<std::string, std::string>& metadata) {
  namespace detail = safetensors_detail;
  nlohmann::json header = nlohmann::json::object(), pairs = nlohmann::json::array();
  uint64_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    const bool is_pairs = tensor.is_complex() && detail::name_of(tensor.scalar_type()) == nullptr;
    const char* type =
        detail::name_of(is_pairs ? c10::toRealValueType(tensor.scalar_type()) : tensor.scalar_type());
    if (type == nullptr)
      return base::fail(Code::kUnimplemented, "cannot save tensor ", name, " in ", path,
                        ": safetensors have no element type ", c10::toString(tensor.scalar_type()));
    if (!base::is_utf8(name) || name == detail::kMetadata)
      return base::fail(Code::kInvalidArgument, "cannot save tensor ", name, " in ", path,
                        ": expected a name in UTF-8, and not ", detail::kMetadata);
    if (header.contains(name))
      return base::fail(Code::kInvalidArgument, path, ": two tensors are called ", name);
    const uint64_t bytes = static_cast<uint64_t>(tensor.numel()) * tensor.element_size();
    std::vector<int64_t> shape = tensor.sizes().vec();
    if (is_pairs) {
      shape.push_back(2);
      pairs.push_back(name);
    }
    header[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  if (!metadata.empty()) header[detail::kMetadata] = metadata;
  if (!pairs.empty()) header[detail::kMetadata][detail::kPairs] = pairs.dump();
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  SLUICE_TRY(auto file, base::AtomicFile::create(path));
  const uint64_t length = text.size();
  SLUICE_OK(file.write(&length, sizeof length));
  SLUICE_OK(file.write(text));
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor dense = detail::to_real(tensor);
    SLUICE_OK(file.write(dense.const_data_ptr(), dense.nbytes()));
  }
  return file.commit();
}

base::Result<NamedTensors> read_safetensors(const std::string& path) {
  namespace detail = safetensors_detail;
  SLUICE_TRY(const uint64_t size, base::file_size(path));
  std::ifstream in(path, std::ios::binary);
  uint64_t length = 0;
  in.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!in || length > detail::kLargestHeader || length > size - sizeof length)
    return base::fail(Code::kDataLoss, path, ": not a safetensors file, or cut off inside its header (", size,
                      " bytes)");
  std::string text(length, '\0');
  in.read(text.data(), static_cast<std::streamsize>(length));
  SLUICE_TRY(const auto header, detail::parse_header(path, text));
  SLUICE_TRY(const auto entries, detail::parse_entries(path, header, size - sizeof length - length));
  SLUICE_TRY(const auto pairs, detail::parse_pairs(path, header));
  NamedTensors result;
  for (const auto& entry : entries) {
    at::Tensor tensor = at::empty(entry.shape, at::TensorOptions(entry.type));
    in.read(static_cast<char*>(tensor.mutable_data_ptr()),
            static_cast<std::streamsize>(entry.end - entry.begin));
    if (!in) return base::fail(Code::kDataLoss, path, ": cannot read tensor ", entry.name);
    if (pairs.count(entry.name) > 0) {
      SLUICE_TRY(tensor, detail::to_complex(path, entry.name, tensor));
    }
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
  if (std::memcmp(start, "PK\3\4", 4) == 0) return read_torch_file(path);
  // A pickle outside of a zip, of protocol 2 to 5, is what torch.save wrote before PyTorch 1.6. The length of
  // a safetensors header may begin with the same two bytes (640 does); the header's bracket is the ninth
  // byte.
  const bool is_pickle = static_cast<unsigned char>(start[0]) == 0x80 && start[1] >= 2 && start[1] <= 5;
  if (is_pickle && start[8] != '{') return read_torch_file(path);
  return read_safetensors(path);
}

}  // namespace sluice::sessions
