#include "sluice/data/decode/npy.h"

#include <charconv>
#include <cstring>
#include <map>
#include <optional>

#include "sluice/base/text/strings.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

tl::unexpected<Error> npy_error(const std::string& cause) {
  return base::fail(Code::kDataLoss, "not a readable npy file: ", cause);
}

// Returns the text after 'key': in the header's dictionary, up to the comma or bracket that ends it.
std::optional<std::string_view> header_entry(std::string_view header, std::string_view key) {
  for (const char quote : {'\'', '"'}) {
    const std::string marked = base::str(quote, key, quote);
    const std::size_t at = header.find(marked);
    if (at == std::string_view::npos) continue;
    std::string_view rest = header.substr(at + marked.size());
    const std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    rest = base::trim(rest.substr(colon + 1));
    const std::size_t end = !rest.empty() && rest[0] == '(' ? rest.find(')') : rest.find_first_of(",}");
    if (end == std::string_view::npos) return std::nullopt;
    return base::trim(rest.substr(0, rest[0] == '(' ? end + 1 : end));
  }
  return std::nullopt;
}

std::optional<ElementType> element_type(std::string_view code) {
  static const std::map<std::string, ElementType, std::less<>> kTypes = {
      {"b1", ElementType::kBool},    {"u1", ElementType::kUint8},   {"i1", ElementType::kInt8},
      {"i2", ElementType::kInt16},   {"i4", ElementType::kInt32},   {"i8", ElementType::kInt64},
      {"f2", ElementType::kFloat16}, {"f4", ElementType::kFloat32}, {"f8", ElementType::kFloat64}};
  if (code.size() < 2) return std::nullopt;
  const bool big = code[0] == '>';
  if (code[0] == '<' || code[0] == '|' || code[0] == '=' || big) code.remove_prefix(1);
  const auto found = kTypes.find(code);
  if (found == kTypes.end() || (big && size_of(found->second) > 1)) return std::nullopt;
  return found->second;
}

// Parses "(3, 4)", "(3,)" or "()".
std::optional<std::vector<std::int64_t>> parse_shape(std::string_view text) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return std::nullopt;
  std::vector<std::int64_t> shape;
  for (const std::string& part : base::split(text.substr(1, text.size() - 2), ',')) {
    const std::string_view number = base::trim(part);
    if (number.empty()) continue;
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), extent);
    if (error != std::errc() || end != number.data() + number.size() || extent < 0) return std::nullopt;
    shape.push_back(extent);
  }
  return shape;
}

}  // namespace

base::Result<Array> parse_npy(std::string_view bytes) {
  if (bytes.size() < 10 || !base::starts_with(bytes, "\x93NUMPY"))
    return npy_error(base::str("it has ", bytes.size(),
                               " bytes and does not begin with \\x93NUMPY, as what numpy.save writes"));
  const int version = static_cast<unsigned char>(bytes[6]);
  if (version < 1 || version > 3)
    return npy_error(base::str("format version ", version, ": expected 1, 2 or 3"));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  std::size_t length = 0, start = 8 + length_bytes;
  if (bytes.size() < start) return npy_error("it is cut off inside its header");
  for (std::size_t i = length_bytes; i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(bytes[8 + i]);
  if (bytes.size() - start < length) return npy_error("it is cut off inside its header");
  const std::string_view header = bytes.substr(start, length);
  const std::string_view payload = bytes.substr(start + length);

  const auto descr = header_entry(header, "descr"), order = header_entry(header, "fortran_order"),
             extents = header_entry(header, "shape");
  if (!descr || !order || !extents) return npy_error("its header lacks descr, fortran_order or shape");
  if (*order != "False") return npy_error("it is in Fortran order: save numpy.ascontiguousarray(array)");
  std::string_view code = *descr;
  if (code.size() >= 2) code = code.substr(1, code.size() - 2);
  const auto type = element_type(code);
  if (!type)
    return npy_error(base::str("element type ", *descr,
                               ": expected bool, uint8, int8 … int64 or float16 … float64 ",
                               "in little-endian order"));
  const auto shape = parse_shape(*extents);
  if (!shape) return npy_error(base::str("a shape of ", *extents));
  std::size_t need = size_of(*type);
  for (const std::int64_t extent : *shape)
    if (__builtin_mul_overflow(need, static_cast<std::size_t>(extent), &need))
      return npy_error("its shape is too large");
  if (payload.size() != need)
    return npy_error(base::str("its shape ", *extents, " needs ", need, " bytes, found ", payload.size()));
  SLUICE_OK(claim_memory(need, "an array"));
  Array array(*type, *shape);
  std::memcpy(array.data<void>(), payload.data(), need);
  return array;
}

std::string npy_file(std::string_view type, const std::vector<std::int64_t>& shape,
                     std::string_view elements) {
  constexpr std::size_t kBefore = 10, kAlignment = 64;  // NumPy maps elements that begin at a multiple of it
  std::string header = base::str("{'descr': '", type, "', 'fortran_order': False, 'shape': (",
                                 base::join(shape, ", "), shape.size() == 1 ? ",), }" : "), }");
  header.append(kAlignment - 1 - (kBefore + header.size()) % kAlignment, ' ');
  header += '\n';
  std::string file = "\x93NUMPY";
  file += '\1';
  file += '\0';
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  file += elements;
  return file;
}

}  // namespace sluice::data
