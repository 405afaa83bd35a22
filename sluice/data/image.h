// Pictures: bytes of a file → pixels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::data {

// uint8, row by row, channels together: [height, width, channels].
struct Pixels {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> bytes;
};

enum class ColorModel { kGray = 1, kRgb = 3, kRgba = 4 };

// Decoders of one format each. Grey is the luma of RGB as Pillow computes it, (19595 R + 38470 G + 7471 B +
// 32768)
// >> 16; alpha is 255 where the file has none; 16-bit samples keep their upper byte; a palette is looked up.
// A damaged or cut-off file is an error with the decoder's reason (not with a name: the caller knows it).
// Pictures of more than kMaxPixels are refused.
base::Result<Pixels> decode_jpeg(std::string_view bytes, ColorModel model);
base::Result<Pixels> decode_png(std::string_view bytes, ColorModel model);
base::Result<Pixels> decode_pnm(std::string_view bytes, ColorModel model);  // P1 … P6
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;

// By the file's first bytes, whatever its name says.
base::Result<Pixels> decode_image(std::string_view bytes, ColorModel model);

// 8-bit grey (1), RGB (3) or RGBA (4) as a PNG file.
base::Result<std::string> encode_png(const Pixels& pixels);

// From RGB to another model.
Pixels convert_rgb(Pixels rgb, ColorModel model);

}  // namespace sluice::data
