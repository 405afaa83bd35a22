// Exif's orientation: where the three formats keep it, and what it asks for.
#include <algorithm>
#include <cstring>

#include "sluice/base/strings.h"
#include "sluice/data/images/image.h"

namespace sluice::data {
namespace {

std::uint32_t number(std::string_view bytes, std::size_t at, std::size_t size, bool big) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[big ? at + i : at + size - 1 - i]);
  return value;
}

// Tag 274 of a TIFF header's first directory.
int orientation_of_exif(std::string_view exif) {
  if (base::starts_with(exif, std::string_view("Exif\0\0", 6))) exif.remove_prefix(6);
  const bool big = base::starts_with(exif, "MM");
  if (exif.size() < 8 || (!big && !base::starts_with(exif, "II"))) return 1;
  const std::size_t directory = number(exif, 4, 4, big);
  if (directory > exif.size() || exif.size() - directory < 2) return 1;
  const std::size_t entries = number(exif, directory, 2, big);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t at = directory + 2 + 12 * i;
    if (at + 12 > exif.size()) return 1;
    constexpr std::uint32_t kOrientation = 274, kShort = 3;
    if (number(exif, at, 2, big) != kOrientation || number(exif, at + 2, 2, big) != kShort) continue;
    const auto found = static_cast<int>(number(exif, at + 8, 2, big));
    return found >= 1 && found <= 8 ? found : 1;
  }
  return 1;
}

std::string_view exif_of_jpeg(std::string_view bytes) {
  for (std::size_t at = 2; at + 4 <= bytes.size() && bytes[at] == '\xff';) {
    const auto marker = static_cast<unsigned char>(bytes[at + 1]);
    if (marker == 0xDA || marker == 0xD9) break;
    const std::size_t size = number(bytes, at + 2, 2, true);
    if (size < 2 || size > bytes.size() - at - 2) break;
    const std::string_view body = bytes.substr(at + 4, size - 2);
    if (marker == 0xE1 && base::starts_with(body, std::string_view("Exif\0\0", 6))) return body;
    at += 2 + size;
  }
  return {};
}

// A chunk "eXIf" of PNG (before the pixels), or "EXIF" of WebP.
std::string_view exif_of_chunks(std::string_view bytes, bool png) {
  for (std::size_t at = png ? 8 : 12; at + 8 <= bytes.size();) {
    const std::size_t size = number(bytes, at + (png ? 0 : 4), 4, png);
    const std::string_view name = bytes.substr(at + (png ? 4 : 0), 4);
    if (size > bytes.size() - at - 8) break;
    if (name == (png ? "eXIf" : "EXIF")) return bytes.substr(at + 8, size);
    at += 8 + size + (png ? 4 : size % 2);
  }
  return {};
}

}  // namespace

int orientation_of(std::string_view bytes) {
  if (is_jpeg(bytes)) return orientation_of_exif(exif_of_jpeg(bytes));
  if (base::starts_with(bytes, "\x89PNG")) return orientation_of_exif(exif_of_chunks(bytes, true));
  if (bytes.size() > 12 && base::starts_with(bytes, "RIFF") && bytes.substr(8, 4) == "WEBP")
    return orientation_of_exif(exif_of_chunks(bytes, false));
  return 1;
}

Pixels upright(Pixels pixels, int orientation) {
  if (orientation < 2 || orientation > 8) return pixels;
  // By orientation: whether rows become columns, and which of the file's directions are read backwards.
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
