// Cuts the images of a convolution of 3×3 into the tiles of Winograd's minimal filtering. Internal to this
// room.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/kernels/convolution/winograd/transform.h"
#include "sluice/kernels/convolution/winograd/winograd.h"
#include "sluice/kernels/each_cpu.h"

namespace sluice::kernels {

// The tiles that cover the results, image by image.
class Tiles {
 public:
  explicit Tiles(const WinogradShape& shape);
  int64_t count() const { return shape_.batch * tile_rows_ * tile_columns_; }
  const WinogradShape& shape() const { return shape_; }
  int64_t planes() const { return planes_of(shape_.tiling); }
  // Returns whether an image is as large as a tile, and 32 bits can count all tiles.
  bool are_whole() const {
    return std::min(shape_.out_height, shape_.out_width) >= side_.out && count() <= INT32_MAX / 2;
  }
  // Returns the tile below one in its image, or a tile of the next image; may be count() or more.
  int64_t below(int64_t tile) const { return tile + tile_columns_; }
  // Transforms a tile's input to [planes, rows, channels]; `to` is a row of it.
  void transform_input(const float* x, int64_t tile, int64_t rows, float* to) const;
  void transform_gradient(const float* y, int64_t tile, int64_t rows, float* to) const;
  // Transforms a row of [planes, rows, filters], with the filters from number `first` on, to all filters of
  // y.
  void transform_output(const float* from, int64_t tile, int64_t rows, int64_t first, int64_t filters,
                        float* y) const;
  // Prefetches a tile's pixels: its rows are too short for the hardware's prefetcher. Without this,
  // transforms of images that no cache holds take 1.5 to 2.5 times as long (measured). Inlined, because a
  // compiler drops a call that has no effect.
  SLUICE_INLINE void prefetch_input(const float* x, int64_t tile) const {
    prefetch(tile, x, shape_.in_height, shape_.in_width, shape_.channels, side_.step);
  }
  SLUICE_INLINE void prefetch_output(const float* y, int64_t tile) const {
    prefetch(tile, y, shape_.out_height, shape_.out_width, shape_.filters, side_.out);
  }

 private:
  // A tile's image, and its row and column there.
  struct Position {
    int64_t image, row, column;
  };
  Position position_of(int64_t tile) const {
    const auto number = static_cast<uint32_t>(tile), columns = static_cast<uint32_t>(tile_columns_),
               rows = static_cast<uint32_t>(tile_rows_), row = number / columns;  // 32 bits divide fast
    return {row / rows, row % rows, number % columns};
  }
  // Prefetches pixels; tiles are `step` pixels apart.
  SLUICE_INLINE void prefetch(int64_t tile, const float* pixels, int64_t height, int64_t width,
                              int64_t channels, int64_t step) const {
    constexpr int64_t kLineFloats = 16;
    if (tile >= count()) return;
    const Position at = position_of(tile);
    const int64_t row = at.row * step, column = at.column * step;
    const int64_t floats = std::min(step, width - column) * channels;
    for (int64_t h = row; h < std::min(row + step, height); ++h) {
      const float* const first = pixels + ((at.image * height + h) * width + column) * channels;
      for (int64_t i = 0; i < floats; i += kLineFloats) __builtin_prefetch(first + i);
    }
  }
  WinogradShape shape_;
  TileSide side_;
  int64_t tile_rows_, tile_columns_;
};

}  // namespace sluice::kernels
