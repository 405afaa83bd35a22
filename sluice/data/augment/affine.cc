#include "sluice/data/augment/affine.h"

#include <cmath>
#include <cstring>

namespace sluice::data {
namespace {

// Returns a value in units of 1/65536, rounded.
std::int64_t fixed(double value) { return static_cast<std::int64_t>(std::floor(value * 65536.0 + 0.5)); }

}  // namespace

Pixels move_pixels(const PixelView& pixels, const AffineMap& map) {
  const std::int64_t height = pixels.height, width = pixels.width, channels = pixels.channels;
  Pixels result{height, width, channels, pixel_memory(static_cast<std::size_t>(height * width * channels))};
  // Pillow uses these units too, for images of fewer than 32768 pixels a side.
  const std::int64_t a = fixed(map[0]), b = fixed(map[1]), d = fixed(map[3]), e = fixed(map[4]);
  std::int64_t row_x = fixed(map[2] + map[0] * 0.5 + map[1] * 0.5);
  std::int64_t row_y = fixed(map[5] + map[3] * 0.5 + map[4] * 0.5);
  std::uint8_t* out = result.bytes.data();
  std::memset(out, 0, result.bytes.size());
  for (std::int64_t y = 0; y < height; ++y, row_x += b, row_y += e) {
    std::int64_t from_x = row_x, from_y = row_y;
    for (std::int64_t x = 0; x < width; ++x, from_x += a, from_y += d, out += channels) {
      const std::int64_t column = from_x >> 16, row = from_y >> 16;
      if (column < 0 || column >= width || row < 0 || row >= height) continue;
      const std::uint8_t* in = pixels.data + row * pixels.stride + column * channels;
      for (std::int64_t c = 0; c < channels; ++c) out[c] = in[c];
    }
  }
  return result;
}

AffineMap shear_x(double share) { return {1, share, 0, 0, 1, 0}; }

AffineMap shear_y(double share) { return {1, 0, 0, share, 1, 0}; }

AffineMap shift(std::int64_t right, std::int64_t down) {
  return {1, 0, -static_cast<double>(right), 0, 1, -static_cast<double>(down)};
}

AffineMap rotation(double degrees, std::int64_t height, std::int64_t width) {
  // Pillow rounds to 15 places.
  const auto places = [](double value) { return std::nearbyint(value * 1e15) / 1e15; };
  const double angle = -degrees * (M_PI / 180), cosine = places(std::cos(angle)),
               sine = places(std::sin(angle));
  const double x = static_cast<double>(width) / 2, y = static_cast<double>(height) / 2;
  return {cosine, sine, x - cosine * x - sine * y, -sine, cosine, y + sine * x - cosine * y};
}

}  // namespace sluice::data
