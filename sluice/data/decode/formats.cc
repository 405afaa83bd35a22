// The formats of extensions, and the decoders of the small formats.
#include <charconv>
#include <map>

#include "sluice/base/text/strings.h"
#include "sluice/data/decode/decode.h"

namespace sluice::data {

Format format_of(std::string_view extension) {
  static const std::map<std::string, Format, std::less<>> kFormats = {
      {"txt", Format::kText},        {"text", Format::kText},   {"transcript", Format::kText},
      {"cls", Format::kNumber},      {"cls2", Format::kNumber}, {"index", Format::kNumber},
      {"inx", Format::kNumber},      {"id", Format::kNumber},   {"json", Format::kJson},
      {"jsn", Format::kJson},        {"npy", Format::kNpy},     {"jpg", Format::kImage},
      {"jpeg", Format::kImage},      {"jpe", Format::kImage},   {"jfif", Format::kImage},
      {"png", Format::kImage},       {"ppm", Format::kImage},   {"pgm", Format::kImage},
      {"pbm", Format::kImage},       {"pnm", Format::kImage},   {"webp", Format::kImage},
      {"npz", Format::kNpz},         {"mp", Format::kMsgpack},  {"msg", Format::kMsgpack},
      {"msgpack", Format::kMsgpack}, {"cbor", Format::kCbor},   {"pkl", Format::kPython},
      {"pickle", Format::kPython},   {"pyd", Format::kPython},  {"pth", Format::kPython},
      {"ten", Format::kPython},      {"tb", Format::kPython},   {"gif", Format::kImage},
      {"bmp", Format::kImage},       {"tif", Format::kImage},   {"tiff", Format::kImage},
      {"avif", Format::kImage},      {"flac", Format::kSound},  {"wav", Format::kSound}};
  if (base::ends_with(extension, ".gz")) extension.remove_suffix(3);
  const std::size_t dot = extension.rfind('.');
  const auto found = kFormats.find(dot == std::string_view::npos ? extension : extension.substr(dot + 1));
  return found == kFormats.end() ? Format::kBytes : found->second;
}

base::Result<ImageSpec> parse_image_spec(const std::string& spec) {
  static const std::map<std::string, ColorModel, std::less<>> kModels = {
      {"l", ColorModel::kGray}, {"rgb", ColorModel::kRgb}, {"rgba", ColorModel::kRgba}};
  ImageSpec result;
  std::string_view rest = spec;
  result.channels_first = base::starts_with(rest, "torch");
  if (result.channels_first) rest.remove_prefix(5);
  result.real = !base::ends_with(rest, "8");
  if (!result.real) rest.remove_suffix(1);
  if (spec == "torch") rest = "rgb";
  const auto model = kModels.find(rest);
  if (model == kModels.end())
    return base::fail(Code::kInvalidArgument, "unknown image specification '", spec,
                      "': expected l8, rgb8, rgba8, l, rgb or rgba, each also with 'torch' before it");
  result.model = model->second;
  return result;
}

base::Result<std::int64_t> parse_whole_number(std::string_view text) {
  const std::string_view number = base::trim(text);
  std::string_view digits = number;
  if (base::starts_with(digits, "+")) digits.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (!digits.empty() && error == std::errc() && end == digits.data() + digits.size()) return value;
  if (base::starts_with(number, "\xEF\xBB\xBF"))
    return base::fail(
        Code::kDataLoss,
        "expected a whole number, found a byte order mark (BOM) before it: save the text as UTF-8 "
        "without one");
  std::string shown;
  for (const char c : number.substr(0, 20)) shown += c >= ' ' && c <= '~' ? c : '?';
  return base::fail(Code::kDataLoss, "expected a whole number, found '", shown, number.size() > 20 ? "…" : "",
                    "'");
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const std::size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || i + more >= text.size()) return false;
    std::uint32_t point = lead & (0x3Fu >> more);
    for (std::size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      point = point << 6 | (next & 0x3Fu);
    }
    // Reject encodings that are longer than needed, half of a surrogate pair, or beyond Unicode.
    if ((more == 2 && point < 0x800) || (more == 3 && point < 0x10000) || point > 0x10FFFF ||
        (point >= 0xD800 && point <= 0xDFFF))
      return false;
    i += more + 1;
  }
  return true;
}

}  // namespace sluice::data
