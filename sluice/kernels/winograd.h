// Convolutions of 3×3 with stride 1 in a quarter of the multiplications, by Winograd's minimal filtering (the
// formulas: winograd_tile.h). Internal to this room.
//
// The multiplications are matrix products over the channels, by oneDNN. Errors are some ten times those of a
// direct sum in f32.
#pragma once

#include <cstdint>
#include <memory>

#include "sluice/kernels/onednn.h"
#include "sluice/kernels/winograd_tile.h"

namespace sluice::kernels {

// y [N, out, F] = x [N, in, C] * w [F, C, 3, 3], activations with the channels last. Turned: of weights [C,
// F, 3, 3] that are turned by half a circle, which makes a gradient of x from one of y.
struct WinogradShape {
  int64_t batch = 0, channels = 0, filters = 0;
  int64_t in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  int64_t padding_height = 0, padding_width = 0;
  bool turned = false;
};

// The tiles of 4×4 pixels that cover the results, picture by picture.
class Tiles {
 public:
  explicit Tiles(const WinogradShape& shape);
  int64_t count() const { return shape_.batch * high_ * wide_; }
  const WinogradShape& shape() const { return shape_; }
  // The transform of a tile's input to [points, stride / channels, channels], of which `to` is a row.
  void transform_input(const float* x, int64_t tile, int64_t rows, float* to) const;
  void transform_gradient(const float* y, int64_t tile, int64_t rows, float* to) const;
  void transform_output(const float* from, int64_t tile, int64_t rows, float* y) const;

 private:
  // Where a tile's first pixel lies.
  struct Place {
    int64_t picture, row, column;
  };
  Place place_of(int64_t tile) const;
  // The pixel of the result at place i of the tile, in units of filters; -1 behind the picture's edge.
  int64_t out_pixel(const Place& tile, int64_t i) const;
  // Asks the memory for the pixels of a tile, for later.
  void fetch(int64_t tile, const float* pixels, int64_t height, int64_t width, int64_t channels) const;
  WinogradShape shape_;
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
  // [points, channels, filters], in the order that the product wants.
  const dnnl_memory_desc_t& weights() const { return product_->layout(dnnl_query_weights_md); }
  void transform_weights(const float* w, float* to) const;
  base::Status run_block(int64_t first, const float* x, void* packed, float* y) const;

  Tiles tiles_;
  int64_t block_ = 0;
  dnnl_memory_desc_t input_, output_;
  std::unique_ptr<Primitive> product_;
};

// The gradient of its weights (shape.turned: false) from x and a gradient of y.
class WinogradGradient {
 public:
  explicit WinogradGradient(const WinogradShape& shape) : tiles_(shape) {}
  static std::unique_ptr<WinogradGradient> make(const WinogradShape& shape);
  // Under UseThreads.
  base::Status run(const float* x, const float* y, float* w) const;

 private:
  Tiles tiles_;
  int64_t block_ = 0;
  dnnl_memory_desc_t input_, gradient_, sum_;
  std::unique_ptr<Primitive> first_, more_;  // the first product is stored, the others are added
};

}  // namespace sluice::kernels
