#include "sluice/session/files/safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sluice/base/formats/parse_json.h"
#include "sluice/base/formats/unique_json.h"
#include "sluice/base/text/utf8.h"

namespace sluice::sessions {
namespace safetensors_header_detail {

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
constexpr const char* kMetadata = kSafetensorsMetadata;
constexpr const char* kPairs = kSafetensorsPairs;

using Entry = SafetensorsEntry;

base::Result<Entry> parse_entry(const std::string& path, const std::string& name,
                                const nlohmann::json& json) {
  auto bad = [&](const auto&... what) {
    return base::fail(Code::kDataLoss, path, ": the header's entry of tensor ", name, " is wrong: ", what...);
  };
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets"))
    return bad("expected dtype, shape and data_offsets");
  Entry entry;
  entry.name = name;
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
    entry.sizes.push_back(size.get<int64_t>());
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
  // A tensor without elements begins where the next one does.
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
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

base::Result<nlohmann::json> parse_header(const std::string& path, std::string_view text) {
  auto header = base::parse_unique_json(text);
  if (!header) return base::fail_at(header, path);
  if (header->is_object()) return header;
  return base::fail(Code::kDataLoss, path, ": not a safetensors file: its header is not a JSON object");
}

// Makes an entry of pairs one of complex numbers.
base::Status make_complex(const std::string& path, Entry& entry) {
  const bool good = (entry.type == at::kDouble || entry.type == at::kHalf) && !entry.sizes.empty() &&
                    entry.sizes.back() == 2;
  if (!good)
    return base::fail(Code::kDataLoss, path, ": the metadata's ", kPairs, " names the tensor ", entry.name,
                      ": expected F64 or F16 with a shape that ends in 2, found ", entry.type, " of ",
                      at::IntArrayRef(entry.sizes));
  entry.type = c10::toComplexType(entry.type);
  entry.sizes.pop_back();
  return {};
}

}  // namespace safetensors_header_detail

const char* safetensors_type(at::ScalarType type) {
  for (const auto& entry : safetensors_header_detail::kTypes)
    if (entry.type == type) return entry.name;
  return nullptr;
}

base::Result<std::string> safetensors_start(const std::string& path,
                                            const std::vector<SafetensorsEntry>& tensors,
                                            const std::map<std::string, std::string>& metadata) {
  nlohmann::json header = nlohmann::json::object(), pairs = nlohmann::json::array();
  uint64_t at = 0;
  for (const SafetensorsEntry& tensor : tensors) {
    const std::string& name = tensor.name;
    const bool is_pairs = c10::isComplexType(tensor.type) && safetensors_type(tensor.type) == nullptr;
    const char* const type = safetensors_type(is_pairs ? c10::toRealValueType(tensor.type) : tensor.type);
    if (type == nullptr)
      return base::fail(Code::kUnimplemented, "cannot save tensor ", name, " in ", path,
                        ": safetensors have no element type ", c10::toString(tensor.type));
    if (!base::is_utf8(name) || name == kSafetensorsMetadata)
      return base::fail(Code::kInvalidArgument, "cannot save tensor ", name, " in ", path,
                        ": expected a name in UTF-8, and not ", kSafetensorsMetadata);
    if (header.contains(name))
      return base::fail(Code::kInvalidArgument, path, ": two tensors are called ", name);
    uint64_t bytes = c10::elementSize(tensor.type);
    for (const int64_t size : tensor.sizes) bytes *= static_cast<uint64_t>(size);
    std::vector<int64_t> shape = tensor.sizes;
    if (is_pairs) {
      shape.push_back(2);
      pairs.push_back(name);
    }
    header[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  if (!metadata.empty()) header[kSafetensorsMetadata] = metadata;
  if (!pairs.empty()) header[kSafetensorsMetadata][kSafetensorsPairs] = pairs.dump();
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

bool is_torch_file(std::string_view start) {
  if (start.substr(0, 4) == std::string_view("PK\3\4", 4)) return true;
  // A pickle outside of a zip, of protocol 2 to 5, is what torch.save wrote before PyTorch 1.6. The length of
  // a safetensors header may begin with the same two bytes (640 does); the header's bracket is the ninth
  // byte.
  const bool is_pickle =
      start.size() > 1 && static_cast<unsigned char>(start[0]) == 0x80 && start[1] >= 2 && start[1] <= 5;
  return is_pickle && (start.size() < 9 || start[8] != '{');
}

base::Result<uint64_t> safetensors_header_length(const std::string& path, std::string_view start,
                                                 uint64_t file_bytes) {
  uint64_t length = 0;
  if (start.size() >= kHeaderLengthBytes) std::memcpy(&length, start.data(), kHeaderLengthBytes);
  if (start.size() < kHeaderLengthBytes || file_bytes < kHeaderLengthBytes || length > kLargestHeader ||
      length > file_bytes - kHeaderLengthBytes)
    return base::fail(Code::kDataLoss, path, ": not a safetensors file, or cut off inside its header (",
                      file_bytes, " bytes)");
  return length;
}

base::Result<std::vector<SafetensorsEntry>> parse_safetensors_header(const std::string& path,
                                                                     std::string_view text,
                                                                     uint64_t data_bytes) {
  namespace detail = safetensors_header_detail;
  SLUICE_TRY(const auto header, detail::parse_header(path, text));
  SLUICE_TRY(auto entries, detail::parse_entries(path, header, data_bytes));
  SLUICE_TRY(const auto pairs, detail::parse_pairs(path, header));
  for (auto& entry : entries)
    if (pairs.count(entry.name) > 0) SLUICE_OK(detail::make_complex(path, entry));
  return entries;
}

}  // namespace sluice::sessions
