// The pictures of a convolution of 3×3, cut into the tiles of Winograd's minimal filtering. Internal to this
// room.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/kernels/convolution/winograd.h"
#include "sluice/kernels/convolution/winograd_tile.h"
#include "sluice/kernels/each_cpu.h"
#include "sluice/kernels/lanes.h"

namespace sluice::kernels {

// There are enough tiles for the work on the weights, which is the same for one as for many, if there is one
// for so many weights of a tap; with fewer, oneDNN's direct kernels are faster (measured:
// docs/performance.md). Those for AVX-512 are better than those for AVX2.
inline int64_t weights_of_tile() { return has_lanes16() ? 2048 : 8192; }
constexpr int64_t kWeightsOfGradientTile = 8192;

// The tiles that cover the results, picture by picture.
class Tiles {
 public:
  explicit Tiles(const WinogradShape& shape);
  int64_t count() const { return shape_.batch * high_ * wide_; }
  const WinogradShape& shape() const { return shape_; }
  int64_t planes() const { return planes_of(shape_.tiling); }
  // Also that a picture is as large as a tile, and that 32 bits count them.
  bool outweigh_weights(int64_t weights_of_tile) const {
    return count() >= shape_.channels * shape_.filters / weights_of_tile && count() <= INT32_MAX / 2 &&
           std::min(shape_.out_height, shape_.out_width) >= side_.out;
  }
  // The tile that lies below one in its picture, or one of the next picture; may be count() or more.
  int64_t below(int64_t tile) const { return tile + wide_; }
  // The transform of a tile's input to [planes, rows, channels], of which `to` is a row.
  void transform_input(const float* x, int64_t tile, int64_t rows, float* to) const;
  void transform_gradient(const float* y, int64_t tile, int64_t rows, float* to) const;
  // From a row of [planes, rows, filters], of the filters from number `first` on, to all filters of y.
  void transform_output(const float* from, int64_t tile, int64_t rows, int64_t first, int64_t filters,
                        float* y) const;
  // Asks the memory for a tile's pixels, for later: a row of a tile is too short for the hardware to guess
  // the next one. Without this, transforms of pictures that no cache holds take 1.5 to 2.5 times as long
  // (measured). Inlined, because a compiler drops a call that has no effect.
  SLUICE_INLINE void fetch_input(const float* x, int64_t tile) const {
    fetch(tile, x, shape_.in_height, shape_.in_width, shape_.channels, side_.step);
  }
  SLUICE_INLINE void fetch_output(const float* y, int64_t tile) const {
    fetch(tile, y, shape_.out_height, shape_.out_width, shape_.filters, side_.out);
  }

 private:
  // Of a tile: its picture, and its row and column there.
  struct Place {
    int64_t picture, row, column;
  };
  Place place_of(int64_t tile) const {
    const auto number = static_cast<uint32_t>(tile), wide = static_cast<uint32_t>(wide_),
               high = static_cast<uint32_t>(high_), row = number / wide;  // fast where they are short
    return {row / high, row % high, number % wide};
  }
  // `step` pixels from one tile to the next.
  SLUICE_INLINE void fetch(int64_t tile, const float* pixels, int64_t height, int64_t width, int64_t channels,
                           int64_t step) const {
    constexpr int64_t kLineFloats = 16;
    if (tile >= count()) return;
    const Place at = place_of(tile);
    const int64_t row = at.row * step, column = at.column * step;
    const int64_t floats = std::min(step, width - column) * channels;
    for (int64_t h = row; h < std::min(row + step, height); ++h) {
      const float* const first = pixels + ((at.picture * height + h) * width + column) * channels;
      for (int64_t i = 0; i < floats; i += kLineFloats) __builtin_prefetch(first + i);
    }
  }
  WinogradShape shape_;
  TileSide side_;
  int64_t high_, wide_;
};

}  // namespace sluice::kernels
