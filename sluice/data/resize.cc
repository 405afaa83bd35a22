#include "sluice/data/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sluice::data {
namespace {

constexpr int kPrecision = 22;  // bits after the point: 8 for a pixel and 2 to spare make 32

// For each new position: the first old one that counts, how many do, and their weights in fixed point.
struct Window {
  std::int64_t first = 0, count = 0;
  std::vector<std::int32_t> weights;
};

std::vector<Window> triangle_windows(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double radius = std::max(scale, 1.0);
  std::vector<Window> windows(static_cast<std::size_t>(to));
  for (std::int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    Window& window = windows[static_cast<std::size_t>(i)];
    window.first = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - radius + 0.5));
    window.count = std::min(from, static_cast<std::int64_t>(center + radius + 0.5)) - window.first;
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t k = 0; k < window.count; ++k) {
      const double distance = std::abs((static_cast<double>(window.first + k) - center + 0.5) / radius);
      weights.push_back(distance < 1 ? 1 - distance : 0);
      sum += weights.back();
    }
    for (const double weight : weights)
      window.weights.push_back(static_cast<std::int32_t>(0.5 + weight / sum * (1 << kPrecision)));
  }
  return windows;
}

std::uint8_t rounded_pixel(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kPrecision, 0, 255));
}

constexpr std::int32_t kHalf = 1 << (kPrecision - 1);

Pixels resize_rows(const Pixels& pixels, std::int64_t width) {
  Pixels result{pixels.height, width, pixels.channels, {}};
  result.bytes.resize(static_cast<std::size_t>(result.height * width * result.channels));
  const auto windows = triangle_windows(pixels.width, width);
  std::uint8_t* out = result.bytes.data();
  for (std::int64_t y = 0; y < pixels.height; ++y) {
    const std::uint8_t* row = pixels.bytes.data() + y * pixels.width * pixels.channels;
    for (const Window& window : windows) {
      for (std::int64_t c = 0; c < pixels.channels; ++c) {
        const std::uint8_t* in = row + window.first * pixels.channels + c;
        std::int32_t sum = kHalf;
        for (std::int64_t k = 0; k < window.count; ++k)
          sum += in[k * pixels.channels] * window.weights[static_cast<std::size_t>(k)];
        *out++ = rounded_pixel(sum);
      }
    }
  }
  return result;
}

Pixels resize_columns(const Pixels& pixels, std::int64_t height) {
  Pixels result{height, pixels.width, pixels.channels, {}};
  const std::size_t stride = static_cast<std::size_t>(pixels.width * pixels.channels);
  result.bytes.resize(static_cast<std::size_t>(height) * stride);
  std::vector<std::int32_t> sums(stride);
  std::uint8_t* out = result.bytes.data();
  for (const Window& window : triangle_windows(pixels.height, height)) {
    std::fill(sums.begin(), sums.end(), kHalf);
    for (std::int64_t k = 0; k < window.count; ++k) {
      const std::uint8_t* in = pixels.bytes.data() + static_cast<std::size_t>(window.first + k) * stride;
      const std::int32_t weight = window.weights[static_cast<std::size_t>(k)];
      for (std::size_t i = 0; i < stride; ++i) sums[i] += in[i] * weight;
    }
    for (std::size_t i = 0; i < stride; ++i) *out++ = rounded_pixel(sums[i]);
  }
  return result;
}

}  // namespace

Pixels resize_bilinear(const Pixels& pixels, std::int64_t height, std::int64_t width) {
  if (pixels.width == width && pixels.height == height) return pixels;
  if (pixels.width == width) return resize_columns(pixels, height);
  Pixels rows = resize_rows(pixels, width);
  return pixels.height == height ? std::move(rows) : resize_columns(rows, height);
}

Pixels crop_pixels(const Pixels& pixels, std::int64_t top, std::int64_t left, std::int64_t height,
                   std::int64_t width, bool mirrored) {
  const std::int64_t channels = pixels.channels;
  Pixels result{height, width, channels, {}};
  result.bytes.assign(static_cast<std::size_t>(height * width * channels), 0);
  const std::int64_t first = std::max<std::int64_t>(0, -left);
  const std::int64_t last = std::min(width, pixels.width - left);
  for (std::int64_t y = std::max<std::int64_t>(0, -top); y < std::min(height, pixels.height - top); ++y) {
    const std::uint8_t* in = pixels.bytes.data() + ((y + top) * pixels.width + left) * channels;
    std::uint8_t* out = result.bytes.data() + y * width * channels;
    if (last <= first) break;
    if (!mirrored) {
      std::memcpy(out + first * channels, in + first * channels,
                  static_cast<std::size_t>((last - first) * channels));
      continue;
    }
    for (std::int64_t x = first; x < last; ++x)
      for (std::int64_t c = 0; c < channels; ++c) out[(width - 1 - x) * channels + c] = in[x * channels + c];
  }
  return result;
}

}  // namespace sluice::data
