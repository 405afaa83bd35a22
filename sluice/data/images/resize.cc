#include "sluice/data/images/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sluice/data/images/resize_rows.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

// Returns the weights for `to` positions over the stretch of `size` old ones that begins at `start`; there
// are `from` old ones in all.
ResizeWindows triangle_windows(std::int64_t from, double start, double size, std::int64_t to) {
  const double scale = size / static_cast<double>(to);
  const double radius = std::max(scale, 1.0);
  ResizeWindows windows;
  windows.taps = 2 * static_cast<std::int64_t>(radius + 1.5);  // even, and never less than a window's count
  windows.weights.assign(static_cast<std::size_t>(to * windows.taps), 0);
  windows.first.reserve(static_cast<std::size_t>(to));
  windows.count.reserve(static_cast<std::size_t>(to));
  std::vector<double> weights;
  for (std::int64_t i = 0; i < to; ++i) {
    const double center = start + (static_cast<double>(i) + 0.5) * scale;
    const std::int64_t first = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - radius + 0.5));
    const std::int64_t count = std::min(from, static_cast<std::int64_t>(center + radius + 0.5)) - first;
    weights.clear();
    double sum = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      const double distance = std::abs((static_cast<double>(first + k) - center + 0.5) / radius);
      weights.push_back(distance < 1 ? 1 - distance : 0);
      sum += weights.back();
    }
    for (std::int64_t k = 0; k < count; ++k)
      windows.weights[static_cast<std::size_t>(i * windows.taps + k)] =
          static_cast<std::int32_t>(0.5 + weights[static_cast<std::size_t>(k)] / sum * (1 << kResizeBits));
    windows.first.push_back(first);
    windows.count.push_back(count);
  }
  return windows;
}

void mirror_rgb(const std::uint8_t* in, std::int64_t count, std::uint8_t* out) {
  out += 3 * count;
  for (std::int64_t x = 0; x < count; ++x, in += 3) {
    out -= 3;
    out[0] = in[0];
    out[1] = in[1];
    out[2] = in[2];
  }
}

Pixels copy_of(const PixelView& view) {
  Pixels pixels{view.height, view.width, view.channels, {}};
  const auto row = static_cast<std::size_t>(view.width * view.channels);
  pixels.bytes.resize(row * static_cast<std::size_t>(view.height));
  for (std::int64_t y = 0; y < view.height; ++y)
    std::memcpy(pixels.bytes.data() + static_cast<std::size_t>(y) * row, view.data + y * view.stride, row);
  return pixels;
}

bool whole(std::int64_t extent, double start, double size, std::int64_t to) {
  return start == 0 && size == static_cast<double>(extent) && to == extent;
}

// The rows or columns that contribute to a part.
struct Stretch {
  std::int64_t first = 0, count = 0;
};

Stretch looked_at(std::int64_t extent, double start, double size, std::int64_t to) {
  const double reach = std::max(1.0, size / static_cast<double>(to)) + 1;
  const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(start - reach));
  const auto last = std::min(extent, static_cast<std::int64_t>(std::ceil(start + size + reach)));
  return {first, last - first};
}

// Whether columns come first. The pixels between the passes are rounded to 8 bits, so the order of the passes
// shows. This is Pillow's order since version 13; before, rows always came first.
bool columns_first(const PixelView& pixels, std::int64_t height, std::int64_t width) {
  const std::int64_t lost = pixels.height - height;
  return lost > 0 && lost > 2 * (pixels.width - width);
}

void shape(Pixels& pixels, std::int64_t height, std::int64_t width, std::int64_t channels) {
  pixels.height = height;
  pixels.width = width;
  pixels.channels = channels;
  pixels.bytes.resize(static_cast<std::size_t>(height * width * channels));
}

// Each does one pass; only the direction of the pass uses `box`.
void resize_width(const PixelView& pixels, const Box& box, std::int64_t width, Pixels& result) {
  shape(result, pixels.height, width, pixels.channels);
  resize_along_rows(pixels, triangle_windows(pixels.width, box.left, box.width, width), result.bytes.data());
}

void resize_height(const PixelView& pixels, const Box& box, std::int64_t height, Pixels& result) {
  shape(result, height, pixels.width, pixels.channels);
  resize_along_columns(pixels, triangle_windows(pixels.height, box.top, box.height, height),
                       result.bytes.data());
}

}  // namespace

Pixels resize_bilinear(const PixelView& pixels, std::int64_t height, std::int64_t width) {
  return resize_bilinear(
      pixels, {0, 0, static_cast<double>(pixels.height), static_cast<double>(pixels.width)}, height, width);
}

Pixels resize_bilinear(const PixelView& pixels, const Box& box, std::int64_t height, std::int64_t width) {
  const bool same_height = whole(pixels.height, box.top, box.height, height);
  const bool same_width = whole(pixels.width, box.left, box.width, width);
  if (same_height && same_width) return copy_of(pixels);
  Pixels result;
  if (same_width) {
    resize_height(pixels, box, height, result);
    return result;
  }
  if (same_height) {
    resize_width(pixels, box, width, result);
    return result;
  }
  // The first pass computes only the pixels that the second one needs.
  PixelView needed = pixels;
  Box inner = box;
  thread_local Pixels between;
  const KeptBuffer kept(between.bytes);
  if (columns_first(pixels, height, width)) {
    const Stretch columns = looked_at(pixels.width, box.left, box.width, width);
    needed.data += columns.first * pixels.channels;
    needed.width = columns.count;
    inner.left -= static_cast<double>(columns.first);
    resize_height(needed, inner, height, between);
    resize_width(between, inner, width, result);
  } else {
    const Stretch rows = looked_at(pixels.height, box.top, box.height, height);
    needed.data += rows.first * pixels.stride;
    needed.height = rows.count;
    inner.top -= static_cast<double>(rows.first);
    resize_width(needed, inner, width, between);
    resize_height(between, inner, height, result);
  }
  return result;
}

Pixels resize_region(const PixelView& pixels, const Region& region, std::int64_t height, std::int64_t width) {
  PixelView part = pixels;
  part.data += region.top * part.stride + region.left * part.channels;
  part.height = region.height;
  part.width = region.width;
  return resize_bilinear(part, height, width);
}

base::Status claim_resized(const PixelView& pixels, std::int64_t height, std::int64_t width) {
  const std::int64_t between = std::max(height * pixels.width, pixels.height * width);
  return claim_memory(static_cast<std::uint64_t>((between + height * width) * pixels.channels),
                      "a resized image");
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
    if (channels == 3) {
      mirror_rgb(in + first * 3, last - first, out + (width - last) * 3);
      continue;
    }
    for (std::int64_t x = first; x < last; ++x)
      for (std::int64_t c = 0; c < channels; ++c) out[(width - 1 - x) * channels + c] = in[x * channels + c];
  }
  return result;
}

}  // namespace sluice::data
