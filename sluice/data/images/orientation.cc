// The orientation in which an image is displayed: where the formats store it, and how it is applied.
#include <algorithm>
#include <cstring>
#include <optional>

#include "sluice/base/text/strings.h"
#include "sluice/data/byte_number.h"
#include "sluice/data/images/image.h"

namespace sluice::data {
namespace {

constexpr std::string_view kExifStart("Exif\0\0", 6);
constexpr std::string_view kXmpStart("http://ns.adobe.com/xap/1.0/\0", 29);  // in a JPEG's segment
constexpr std::string_view kXmpKey("XML:com.adobe.xmp\0", 18);               // in a PNG's text

// Returns the orientation, or 1 if it is not one of the eight.
int checked(std::uint64_t orientation) {
  return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
}

// The first directory of a TIFF file, or of Exif, which has the same format.
class Tags {
 public:
  explicit Tags(std::string_view bytes) : bytes_(bytes), big_(base::starts_with(bytes, "MM")) {
    constexpr std::uint64_t kBigTiff = 43;
    if (bytes.size() < 8 || (!big_ && !base::starts_with(bytes, "II"))) return;
    if (number(2, 2) == kBigTiff) word_ = 8;
    if (bytes.size() < 2 * word_) return;
    const std::uint64_t directory = number(word_, word_);
    const std::size_t counter = word_ == 8 ? 8 : 2;
    if (directory > bytes.size() || bytes.size() - directory < counter) return;
    first_ = directory + counter;
    entries_ = std::min<std::uint64_t>(number(directory, counter), (bytes.size() - first_) / entry_bytes());
  }
  std::optional<int> orientation() const {
    constexpr std::uint64_t kOrientation = 274, kShort = 3, kLong = 4;
    const auto at = find(kOrientation);
    if (!at) return std::nullopt;
    const std::uint64_t type = number(*at + 2, 2);
    if (type != kShort && type != kLong) return std::nullopt;
    return checked(number(*at + 4 + word_, type == kShort ? 2 : 4));
  }
  std::string_view xmp() const {
    constexpr std::uint64_t kXmp = 700;
    const auto at = find(kXmp);
    if (!at) return {};
    const std::uint64_t size = number(*at + 4, word_), begin = number(*at + 4 + word_, word_);
    if (size <= word_ || begin > bytes_.size() || size > bytes_.size() - begin) return {};
    return bytes_.substr(begin, size);
  }

 private:
  std::size_t entry_bytes() const { return 4 + 2 * word_; }  // tag, type, count, and a value or its position
  std::uint64_t number(std::size_t at, std::size_t size) const { return number_at(bytes_, at, size, big_); }
  std::optional<std::size_t> find(std::uint64_t tag) const {
    for (std::uint64_t i = 0; i < entries_; ++i)
      if (const std::size_t at = first_ + i * entry_bytes(); number(at, 2) == tag) return at;
    return std::nullopt;
  }

  std::string_view bytes_;
  bool big_;
  std::size_t word_ = 4;
  std::size_t first_ = 0;
  std::uint64_t entries_ = 0;
};

std::optional<int> orientation_of_exif(std::string_view exif) {
  if (base::starts_with(exif, kExifStart)) exif.remove_prefix(kExifStart.size());
  return Tags(exif).orientation();
}

// Finds the orientation as an attribute or an element.
std::optional<int> orientation_of_xmp(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (std::size_t at = xmp.find(kName); at != std::string_view::npos; at = xmp.find(kName, at + 1)) {
    std::string_view rest = xmp.substr(at + kName.size());
    const std::size_t before = base::starts_with(rest, "=\"") ? 2 : base::starts_with(rest, ">") ? 1 : 0;
    rest.remove_prefix(before);
    if (before > 0 && !rest.empty() && rest[0] >= '0' && rest[0] <= '9')
      return checked(static_cast<std::uint64_t>(rest[0] - '0'));
  }
  return std::nullopt;
}

struct Metadata {
  std::string_view exif, xmp;
};

Metadata metadata_of_jpeg(std::string_view bytes) {
  Metadata found;
  for (std::size_t at = 2; at + 4 <= bytes.size() && bytes[at] == '\xff';) {
    const auto marker = static_cast<unsigned char>(bytes[at + 1]);
    if (marker == 0xDA || marker == 0xD9) break;
    const std::size_t size = number_at(bytes, at + 2, 2, true);
    if (size < 2 || size > bytes.size() - at - 2) break;
    const std::string_view body = bytes.substr(at + 4, size - 2);
    if (marker == 0xE1 && found.exif.empty() && base::starts_with(body, kExifStart)) found.exif = body;
    if (marker == 0xE1 && base::starts_with(body, kXmpStart)) found.xmp = body.substr(kXmpStart.size());
    at += 2 + size;
  }
  return found;
}

// Reads the chunks "eXIf" and "iTXt" of PNG (XMP is not packed there), or "EXIF" and "XMP " of WebP.
Metadata metadata_of_chunks(std::string_view bytes, bool png) {
  Metadata found;
  for (std::size_t at = png ? 8 : 12; at + 8 <= bytes.size();) {
    const std::size_t size = number_at(bytes, at + (png ? 0 : 4), 4, png);
    const std::string_view name = bytes.substr(at + (png ? 4 : 0), 4);
    if (size > bytes.size() - at - 8) break;
    const std::string_view body = bytes.substr(at + 8, size);
    if (name == (png ? "eXIf" : "EXIF") && found.exif.empty()) found.exif = body;
    if (png && name == "iTXt" && base::starts_with(body, kXmpKey)) found.xmp = body.substr(kXmpKey.size());
    if (!png && name == "XMP ") found.xmp = body;
    at += 8 + size + (png ? 4 : size % 2);
  }
  return found;
}

int orientation_of(const Metadata& found) {
  if (const auto exif = orientation_of_exif(found.exif)) return *exif;
  return orientation_of_xmp(found.xmp).value_or(1);
}

}  // namespace

int orientation_of(std::string_view bytes) {
  if (is_jpeg(bytes)) return orientation_of(metadata_of_jpeg(bytes));
  if (base::starts_with(bytes, "\x89PNG")) return orientation_of(metadata_of_chunks(bytes, true));
  if (bytes.size() > 12 && base::starts_with(bytes, "RIFF") && bytes.substr(8, 4) == "WEBP")
    return orientation_of(metadata_of_chunks(bytes, false));
  if (is_tiff(bytes)) {
    const Tags tags(bytes);
    const auto own = tags.orientation();
    return own ? *own : orientation_of_xmp(tags.xmp()).value_or(1);
  }
  if (is_avif(bytes)) {
    const AvifMetadata avif = metadata_of_avif(bytes);
    // The file's own boxes count, and not its Exif (ISO/IEC 23008-12, annex A).
    if (avif.orientation != 1 || orientation_of_exif(avif.exif)) return avif.orientation;
    return orientation_of_xmp(avif.xmp).value_or(1);
  }
  return 1;
}

Pixels upright(Pixels pixels, int orientation) {
  if (orientation < 2 || orientation > 8) return pixels;
  // The orientation says whether rows become columns, and which of the file's directions are read backwards.
  const bool transposed = orientation >= 5;
  const bool up = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  const bool back = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  Pixels result{transposed ? pixels.width : pixels.height, transposed ? pixels.height : pixels.width,
                pixels.channels, pixel_memory(pixels.bytes.size())};
  const auto channels = static_cast<std::size_t>(pixels.channels);
  std::uint8_t* out = result.bytes.data();
  for (std::int64_t y = 0; y < result.height; ++y) {
    for (std::int64_t x = 0; x < result.width; ++x, out += channels) {
      std::int64_t row = transposed ? x : y, column = transposed ? y : x;
      if (transposed ? back : up) row = pixels.height - 1 - row;
      if (transposed ? up : back) column = pixels.width - 1 - column;
      std::memcpy(out, pixels.bytes.data() + static_cast<std::size_t>(row * pixels.width + column) * channels,
                  channels);
    }
  }
  return result;
}

}  // namespace sluice::data
