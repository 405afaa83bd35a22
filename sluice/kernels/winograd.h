// Convolutions of 3×3 by Winograd's minimal filtering (the formulas: winograd_tile.h): in a quarter of the
// multiplications with stride 1, in 81 of 144 with stride 2. Internal to this room.
//
// The multiplications are matrix products over the channels, by oneDNN. Errors are some ten times those of a
// direct sum in f32.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/kernels/each_cpu.h"
#include "sluice/kernels/onednn.h"
#include "sluice/kernels/winograd_tile.h"

namespace sluice::kernels {

// y [N, out, F] = x [N, in, C] * w [F, C, 3, 3], activations with the channels last. Turned: of weights [C,
// F, 3, 3] that are turned by half a circle, which makes a gradient of x from one of y; so does kDoubling,
// where y is the larger, without padding of its own (that of the convolution is 1).
struct WinogradShape {
  int64_t batch = 0, channels = 0, filters = 0;
  int64_t in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  int64_t padding_height = 0, padding_width = 0;
  bool turned = false;
  Tiling tiling = Tiling::kPlain;
};

// The tiles that cover the results, picture by picture.
class Tiles {
 public:
  explicit Tiles(const WinogradShape& shape);
  int64_t count() const { return shape_.batch * high_ * wide_; }
  const WinogradShape& shape() const { return shape_; }
  int64_t planes() const { return planes_of(shape_.tiling); }
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
  Place place_of(int64_t tile) const { return {tile / (high_ * wide_), tile / wide_ % high_, tile % wide_}; }
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

// The convolution. Null from make() where the library has no fast product, or the shape is too small to gain.
class Winograd {
 public:
  explicit Winograd(const WinogradShape& shape) : tiles_(shape) {}
  static std::unique_ptr<Winograd> make(const WinogradShape& shape);
  // Under UseThreads.
  base::Status run(const float* x, const float* w, float* y) const;

 private:
  // The products of a group of planes. Weights: [kernels, channels, filters], in the order that the product
  // wants.
  struct Group {
    PlaneGroup planes;
    dnnl_memory_desc_t input, output;
    std::unique_ptr<Primitive> product;
    size_t packed = 0;  // where its weights lie, in bytes
    const dnnl_memory_desc_t& weights() const { return product->layout(dnnl_query_weights_md); }
  };
  void transform_weights(const float* w, std::byte* to) const;
  base::Status run_block(int64_t first, const float* x, std::byte* packed, float* y) const;

  Tiles tiles_;
  int64_t block_ = 0;
  size_t packed_bytes_ = 0;
  size_t piece_width_ = 0;  // filters that lie side by side in the weights of every group
  std::vector<Group> groups_;
};

// The gradient of its weights (shape.turned: false; not for kDoubling) from x and a gradient of y.
class WinogradGradient {
 public:
  explicit WinogradGradient(const WinogradShape& shape) : tiles_(shape) {}
  static std::unique_ptr<WinogradGradient> make(const WinogradShape& shape);
  // Under UseThreads.
  base::Status run(const float* x, const float* y, float* w) const;

 private:
  // Products of some planes of a kernel with all that meet them.
  struct Group {
    dnnl_memory_desc_t input, gradient, sum;
    std::unique_ptr<Primitive> first, more;  // the first product is stored, the others are added
  };
  struct Task {
    size_t group;
    int64_t kernel, plane;
  };
  bool add_group(const PlaneGroup& planes, int64_t kernels);
  // The inputs and gradients of a block of tiles: [planes, block_, channels] and [planes, block_, filters].
  void transform(const float* x, const float* y, int64_t first, float* input, float* gradient) const;
  // The sum of the products of the tiles in [begin, end): [kKernelPlanes, channels, filters].
  base::Status add_up(const float* x, const float* y, int64_t begin, int64_t end, float* sum) const;

  Tiles tiles_;
  int64_t block_ = 0, parts_ = 0, tiles_of_part_ = 0;
  dnnl_memory_desc_t all_sums_;
  std::vector<Group> groups_;
  std::vector<Task> tasks_;
};

}  // namespace sluice::kernels
