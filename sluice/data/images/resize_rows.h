// The inner loops of resize_bilinear.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/data/images/image.h"

namespace sluice::data {

inline constexpr int kResizeBits = 22;  // after the point: with 8 for a pixel and 2 to spare, 32 bits

// For each new position: the first old one that counts, and the weights from there on, in fixed point. Each
// has `taps` weights (an even number), filled up with zeros.
struct ResizeWindows {
  std::int64_t taps = 0;
  std::vector<std::int64_t> first, count;
  std::vector<std::int32_t> weights;  // [positions, taps]

  const std::int32_t* of(std::size_t position) const {
    return weights.data() + position * static_cast<std::size_t>(taps);
  }
};

// Converts [rows, width, channels] to `out`, [rows, windows, channels].
void resize_along_rows(const PixelView& in, const ResizeWindows& windows, std::uint8_t* out);
// Converts [height, width, channels] to `out`, [windows, width, channels].
void resize_along_columns(const PixelView& in, const ResizeWindows& windows, std::uint8_t* out);

}  // namespace sluice::data
