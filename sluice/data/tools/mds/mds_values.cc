#include "sluice/data/tools/mds/mds_values.h"

#include <array>
#include <cstring>
#include <map>
#include <type_traits>
#include <utility>

#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/decode/nested.h"
#include "sluice/data/decode/npy.h"
#include "sluice/data/images/image.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

using Kind = MdsEncoding::Kind;

constexpr std::array<MdsType, 11> kTypes = {{{"uint8", "|u1", 1, 8},
                                             {"int8", "|i1", 1, 9},
                                             {"uint16", "<u2", 2, 16},
                                             {"int16", "<i2", 2, 17},
                                             {"float16", "<f2", 2, 18},
                                             {"uint32", "<u4", 4, 32},
                                             {"int32", "<i4", 4, 33},
                                             {"float32", "<f4", 4, 34},
                                             {"uint64", "<u8", 8, 64},
                                             {"int64", "<i8", 8, 65},
                                             {"float64", "<f8", 8, 66}}};

const MdsType* type_of(std::string_view name) {
  for (const MdsType& type : kTypes)
    if (name == type.name) return &type;
  return nullptr;
}
const MdsType* type_of(int code) {
  for (const MdsType& type : kTypes)
    if (code == type.code) return &type;
  return nullptr;
}
bool is_real(const MdsType& type) { return type.numpy[1] == 'f'; }

tl::unexpected<Error> damaged(const std::string& what) { return base::fail(Code::kDataLoss, what); }

// Reads the bytes of a value from front to back.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  // Reads a number of 1, 2, 4 or 8 bytes; nothing if the bytes are missing.
  std::optional<std::uint64_t> number(std::size_t size) {
    if (bytes_.size() < size) return std::nullopt;
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data(), size);
    bytes_.remove_prefix(size);
    return value;
  }
  std::optional<std::string_view> take(std::uint64_t size) {
    if (bytes_.size() < size) return std::nullopt;
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

// Calls `work` with each element, as its own type.
template <typename Work>
void for_each(const MdsArray& array, const Work& work) {
  const auto all = [&](auto example) {
    using T = decltype(example);
    for (std::size_t at = 0; at < array.elements.size(); at += sizeof(T)) {
      T element;
      std::memcpy(&element, array.elements.data() + at, sizeof element);
      work(element);
    }
  };
  switch (array.type->code) {
    case 8:
      return all(std::uint8_t{});
    case 9:
      return all(std::int8_t{});
    case 16:
      return all(std::uint16_t{});
    case 17:
      return all(std::int16_t{});
    case 32:
      return all(std::uint32_t{});
    case 33:
      return all(std::int32_t{});
    case 64:
      return all(std::uint64_t{});
    case 65:
      return all(std::int64_t{});
    default:
      return;  // of real numbers
  }
}

// Converts unsigned numbers to the next larger signed type, because tensors have no such unsigned types.
template <typename From, typename To>
base::Result<std::string> widened(const char* numpy, const MdsArray& array) {
  std::string elements;
  elements.reserve(array.elements.size() / sizeof(From) * sizeof(To));
  bool fits = true;
  for_each(array, [&](auto element) {
    if constexpr (std::is_same_v<decltype(element), From>) {
      fits = fits && std::in_range<To>(element);
      const To wide = static_cast<To>(element);
      elements.append(reinterpret_cast<const char*>(&wide), sizeof wide);
    }
  });
  if (!fits) return damaged("a number of uint64 is above 2^63 − 1, the largest that tensors hold");
  return npy_file(numpy, array.shape, elements);
}

base::Result<std::string> npy_of(const MdsArray& array) {
  switch (array.type->code) {
    case 16:
      return widened<std::uint16_t, std::int32_t>("<i4", array);
    case 32:
      return widened<std::uint32_t, std::int64_t>("<i8", array);
    case 64:
      return widened<std::uint64_t, std::int64_t>("<i8", array);
    default:
      return npy_file(array.type->numpy, array.shape, array.elements);
  }
}

// Reads [width] [height] [bytes of the mode] [mode] [pixels].
base::Result<std::string> png_of(std::string_view value) {
  Reader reader(value);
  const auto width = reader.number(4), height = reader.number(4), mode_size = reader.number(4);
  const auto mode = mode_size ? reader.take(*mode_size) : std::nullopt;
  if (!mode) return damaged("an image of Pillow's is cut off inside its header");
  static const std::map<std::string_view, std::int64_t> kChannels = {
      {"L", 1}, {"RGB", 3}, {"RGBA", 4}, {"1", 0}};
  const auto channels = kChannels.find(*mode);
  if (channels == kChannels.end())
    return base::fail(Code::kInvalidArgument, "an image of Pillow's mode '", mode->substr(0, 20),
                      "': expected 1, L, RGB or RGBA");
  const bool bits = channels->second == 0;
  const std::string_view pixels = reader.rest();
  const std::uint64_t row = bits ? (*width + 7) / 8 : *width * static_cast<std::uint64_t>(channels->second);
  if (*width == 0 || *height == 0 || pixels.size() / *height != row || pixels.size() % *height != 0)
    return damaged(base::str("an image of ", *width, " × ", *height, " pixels in mode ", *mode, " has ",
                             pixels.size(), " bytes"));
  SLUICE_OK(check_pixels(static_cast<std::int64_t>(*width), static_cast<std::int64_t>(*height)));
  SLUICE_OK(
      claim_memory(*height * *width * static_cast<std::uint64_t>(bits ? 1 : channels->second), "an image"));
  Pixels image{
      static_cast<std::int64_t>(*height), static_cast<std::int64_t>(*width), bits ? 1 : channels->second, {}};
  if (!bits) image.bytes.assign(pixels.begin(), pixels.end());
  for (std::uint64_t y = 0; bits && y < *height; ++y)
    for (std::uint64_t x = 0; x < *width; ++x)
      image.bytes.push_back((pixels[y * row + x / 8] >> (7 - x % 8) & 1) != 0 ? 255 : 0);
  return encode_png(image);
}

// Reads [placeholder] [number] [bytes of each] [images].
base::Result<std::vector<std::string_view>> images_of(const MdsEncoding& encoding, std::string_view value) {
  Reader reader(value);
  if (encoding.has_placeholder && !reader.number(4)) return damaged("a list of images is cut off");
  const auto count = reader.number(4);
  const auto sizes = count ? reader.take(*count * 4) : std::nullopt;
  if (!sizes) return damaged("a list of images is cut off inside its header");
  std::vector<std::string_view> images;
  Reader each(*sizes);
  while (const auto size = each.number(4)) {
    const auto image = reader.take(*size);
    if (!image) return damaged(base::str("image ", images.size(), " of a list is cut off"));
    images.push_back(*image);
  }
  if (!reader.rest().empty()) return damaged("bytes are left after a list of images");
  return images;
}

base::Result<std::string> payload_of(Kind kind, std::string_view value) {
  if (kind == Kind::kPil || kind == Kind::kPils) return png_of(value);
  if (kind == Kind::kJson)
    if (const auto is_json = check_json(value); !is_json) return tl::unexpected<Error>(is_json.error());
  if (kind == Kind::kDigits) {
    const std::string_view digits = value.substr(base::starts_with(value, "-") ? 1 : 0);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
      return damaged(base::str("a whole number is '", value.substr(0, 40), "'"));
  }
  return std::string(value);
}

}  // namespace

std::optional<std::uint64_t> MdsEncoding::size() const {
  if (kind == Kind::kNumber) return type->size;
  if (kind != Kind::kArray || type == nullptr || !shape) return std::nullopt;
  std::uint64_t bytes = type->size;
  // parsing has excluded an overflow
  for (const std::int64_t extent : *shape) bytes *= static_cast<std::uint64_t>(extent);
  return bytes;
}

base::Result<MdsEncoding> parse_mds_encoding(const std::string& text) {
  static const std::map<std::string, MdsEncoding, std::less<>> kPlain = {
      {"bytes", {Kind::kBytes, nullptr, {}, false}},      {"str", {Kind::kText, nullptr, {}, false}},
      {"int", {Kind::kNumber, type_of(65), {}, false}},   {"str_int", {Kind::kDigits, nullptr, {}, false}},
      {"str_float", {Kind::kText, nullptr, {}, false}},   {"str_decimal", {Kind::kText, nullptr, {}, false}},
      {"json", {Kind::kJson, nullptr, {}, false}},        {"jpeg", {Kind::kJpeg, nullptr, {}, false}},
      {"png", {Kind::kPng, nullptr, {}, false}},          {"pil", {Kind::kPil, nullptr, {}, false}},
      {"ndarray", {Kind::kArray, nullptr, {}, false}},    {"jpegarray", {Kind::kJpegs, nullptr, {}, false}},
      {"jpeg_array", {Kind::kJpegs, nullptr, {}, false}}, {"list[jpeg]", {Kind::kJpegs, nullptr, {}, true}},
      {"list[png]", {Kind::kPngs, nullptr, {}, true}},    {"list[pil]", {Kind::kPils, nullptr, {}, true}}};
  if (const auto found = kPlain.find(text); found != kPlain.end()) return found->second;
  if (const MdsType* const type = type_of(text)) return MdsEncoding{Kind::kNumber, type, {}, false};
  if (text == "pkl")
    return base::fail(Code::kInvalidArgument,
                      "the encoding pkl is Python's pickle, a program that runs when it is read, and is not "
                      "read here: leave the column out by naming the others");
  const auto parts = base::split(text, ':');
  MdsEncoding encoding{Kind::kArray, parts.size() > 1 ? type_of(parts[1]) : nullptr, {}, false};
  std::uint64_t bytes = encoding.type == nullptr ? 0 : encoding.type->size;
  bool good = parts.front() == "ndarray" && parts.size() <= 3 && encoding.type != nullptr;
  if (good && parts.size() == 3) {
    encoding.shape.emplace();
    for (const std::string& extent : base::split(parts[2], ',')) {
      const auto number = base::number_of<std::uint32_t>(extent);
      good = good && number && *number > 0 && !__builtin_mul_overflow(bytes, std::uint64_t{*number}, &bytes);
      if (good) encoding.shape->push_back(*number);
    }
  }
  if (!good)
    return base::fail(Code::kInvalidArgument, "the encoding '", text,
                      "' is not known: expected str, bytes, int, int8 … uint64, float16 … float64, str_int, "
                      "str_float, str_decimal, ndarray (:TYPE and :TYPE:SHAPE too), json, jpeg, png, pil, "
                      "jpegarray, list[jpeg], list[png] or list[pil]");
  return encoding;
}

base::Result<MdsArray> mds_array(const MdsEncoding& encoding, std::string_view value) {
  MdsArray array{encoding.type, encoding.shape.value_or(std::vector<std::int64_t>()), {}};
  Reader reader(value);
  if (array.type == nullptr) {
    const auto code = reader.number(1);
    array.type = code ? type_of(static_cast<int>(*code)) : nullptr;
    if (array.type == nullptr)
      return damaged(code ? base::str("an array's element type is ", *code, ", which NumPy does not have")
                          : std::string("an array has no bytes"));
  }
  std::uint64_t need = array.type->size;
  if (encoding.kind == Kind::kArray && !encoding.shape) {
    const auto head = reader.number(1);  // the number of extents, and in its last two bits their width
    for (std::uint64_t i = 0; head && i < *head >> 2; ++i) {
      const auto extent = reader.number(std::size_t{1} << (*head & 3));
      if (!extent || *extent > INT64_MAX) return damaged("an array is cut off inside its shape");
      array.shape.push_back(static_cast<std::int64_t>(*extent));
    }
    if (!head) return damaged("an array is cut off inside its shape");
  }
  for (const std::int64_t extent : array.shape)
    if (__builtin_mul_overflow(need, static_cast<std::uint64_t>(extent), &need))
      return damaged("an array's shape is too large");
  if (need != reader.rest().size())
    return damaged(base::str("an array of ", array.type->name, " [", base::join(array.shape, ", "),
                             "] needs ", need, " bytes, found ", reader.rest().size()));
  array.elements = reader.rest();
  return array;
}

const char* mds_extension(const MdsEncoding& encoding) {
  switch (encoding.kind) {
    case Kind::kText:
      return "txt";
    case Kind::kDigits:
      return "cls";
    case Kind::kJson:
      return "json";
    case Kind::kNumber:
      return is_real(*encoding.type) ? "npy" : "cls";
    case Kind::kArray:
      return "npy";
    case Kind::kJpeg:
    case Kind::kJpegs:
      return "jpg";
    case Kind::kPng:
    case Kind::kPngs:
    case Kind::kPil:
    case Kind::kPils:
      return "png";
    case Kind::kBytes:
      break;
  }
  return "bin";
}

base::Result<std::vector<MdsMember>> mds_members(const MdsEncoding& encoding, std::string_view value) {
  const std::string extension = mds_extension(encoding);
  std::vector<MdsMember> members;
  const Kind kind = encoding.kind;
  if (kind == Kind::kJpegs || kind == Kind::kPngs || kind == Kind::kPils) {
    SLUICE_TRY(const auto images, images_of(encoding, value));
    for (const std::string_view image : images) {
      SLUICE_TRY(std::string payload, payload_of(kind, image));
      members.push_back({base::str(members.size(), "."), extension, std::move(payload)});
    }
    return members;
  }
  std::string payload;
  if (kind == Kind::kNumber || kind == Kind::kArray) {
    SLUICE_TRY(const MdsArray array, mds_array(encoding, value));
    if (extension == "npy") {
      SLUICE_TRY(payload, npy_of(array));
    } else {
      for_each(array, [&](auto number) { payload = std::to_string(number); });
    }
  } else {
    SLUICE_TRY(payload, payload_of(kind, value));
  }
  members.push_back({"", extension, std::move(payload)});
  return members;
}

base::Result<std::vector<std::uint32_t>> mds_ids(const MdsEncoding& encoding, const std::string& type,
                                                 std::string_view value) {
  MdsArray array;
  if (encoding.kind == Kind::kBytes) {
    array = {type_of(type), {}, value};
    if (array.type == nullptr || is_real(*array.type))
      return base::fail(
          Code::kInvalidArgument, "its bytes do not say what numbers they are",
          type.empty() ? std::string() : base::str(", and '", type, "' is not one of their types"),
          ": expected --id-type uint16, int32, uint32 or int64 (LLM Foundry's)");
    if (value.size() % array.type->size != 0)
      return damaged(base::str(value.size(), " bytes are not numbers of ", array.type->size, " bytes each"));
  } else if (encoding.kind == Kind::kArray) {
    SLUICE_TRY(array, mds_array(encoding, value));
  }
  if (array.type == nullptr || is_real(*array.type))
    return base::fail(Code::kInvalidArgument,
                      "it holds no tokens: expected an ndarray of whole numbers, or bytes");
  std::vector<std::uint32_t> ids;
  ids.reserve(array.elements.size() / array.type->size);
  std::optional<std::string> outside;
  for_each(array, [&](auto number) {
    if (!std::in_range<std::uint32_t>(number)) outside = std::to_string(number);
    ids.push_back(static_cast<std::uint32_t>(number));
  });
  if (outside) return base::fail(Code::kOutOfRange, "the id ", *outside, " is not a token");
  return ids;
}

}  // namespace sluice::data
