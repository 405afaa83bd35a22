#include "sluice/kernels/convolution/tiles.h"

#include <type_traits>

#include "sluice/kernels/arena.h"

namespace sluice::kernels {

Tiles::Tiles(const WinogradShape& shape)
    : shape_(shape),
      side_(side_of(shape.tiling)),
      high_((shape.out_height + side_.out - 1) / side_.out),
      wide_((shape.out_width + side_.out - 1) / side_.out) {}

namespace {

// Pixels of a tile's side that lie in the picture.
struct Inside {
  int begin, end;
  bool has(int i) const { return i >= begin && i < end; }
};

// Where the tile's pixels are, row by row: those outside the picture at `outside`. `row` and `column` of its
// first pixel may lie outside.
template <int kSide, typename Float>
SLUICE_INLINE void list_pixels(Float* picture, int64_t row, int64_t column, int64_t height, int64_t width,
                               int64_t floats, Float* outside, TilePixels<Float>& to) {
  to.whole = row >= 0 && column >= 0 && row + kSide <= height && column + kSide <= width;
  if (to.whole) {
    to.first = picture + (row * width + column) * floats;
    to.row_step = static_cast<size_t>(width * floats);
    to.column_step = static_cast<size_t>(floats);
    return;
  }
  const auto inside = [](int64_t first, int64_t extent) {
    return Inside{static_cast<int>(std::max<int64_t>(0, -first)),
                  static_cast<int>(std::min<int64_t>(kSide, extent - first))};
  };
  const Inside rows = inside(row, height), columns = inside(column, width);
#pragma GCC unroll 9
  for (int i = 0; i < kSide; ++i)
#pragma GCC unroll 9
    for (int j = 0; j < kSide; ++j) {
      const bool there = rows.has(i) && columns.has(j);
      const int64_t place = ((row + i) * width + column + j) * floats;
      to.each[static_cast<size_t>(i * kSide + j)] = (there ? picture : outside) + (there ? place : 0);
    }
}

// For a side of `side` pixels.
template <typename Float>
void list_pixels(int side, Float* picture, int64_t row, int64_t column, int64_t height, int64_t width,
                 int64_t floats, Float* outside, TilePixels<Float>& to) {
  const auto list = [&](auto fixed) {
    list_pixels<fixed.value>(picture, row, column, height, width, floats, outside, to);
  };
  if (side == 4) return list(std::integral_constant<int, 4>());
  if (side == 5) return list(std::integral_constant<int, 5>());
  if (side == 6) return list(std::integral_constant<int, 6>());
  if (side == 8) return list(std::integral_constant<int, 8>());
  list(std::integral_constant<int, 9>());
}

}  // namespace

void Tiles::transform_input(const float* x, int64_t tile, int64_t rows, float* to) const {
  static const std::array<float, 4096> zeros{};
  const auto channels = static_cast<size_t>(shape_.channels);
  const Place at = place_of(tile);
  const float* const picture = x + at.picture * shape_.in_height * shape_.in_width * shape_.channels;
  for (size_t first = 0; first < channels; first += zeros.size()) {
    TileInputs from;
    list_pixels(side_.in, picture + first, at.row * side_.step - shape_.padding_height,
                at.column * side_.step - shape_.padding_width, shape_.in_height, shape_.in_width,
                shape_.channels, zeros.data(), from);
    input_tile(shape_.tiling, from, std::min(channels - first, zeros.size()),
               static_cast<size_t>(rows) * channels, to + first);
  }
}

void Tiles::transform_gradient(const float* y, int64_t tile, int64_t rows, float* to) const {
  const auto filters = static_cast<size_t>(shape_.filters);
  const Scratch outside(filters * sizeof(float));
  std::fill(outside.floats(), outside.floats() + filters, 0.f);
  const Place at = place_of(tile);
  TileInputs from;
  list_pixels(side_.out, y + at.picture * shape_.out_height * shape_.out_width * shape_.filters,
              at.row * side_.out, at.column * side_.out, shape_.out_height, shape_.out_width, shape_.filters,
              static_cast<const float*>(outside.floats()), from);
  gradient_tile(shape_.tiling, from, filters, static_cast<size_t>(rows) * filters, to);
}

void Tiles::transform_output(const float* from, int64_t tile, int64_t rows, int64_t first, int64_t filters,
                             float* y) const {
  const Scratch dropped(static_cast<size_t>(filters) * sizeof(float));
  const Place at = place_of(tile);
  TileOutputs to;
  list_pixels(side_.out, y + at.picture * shape_.out_height * shape_.out_width * shape_.filters + first,
              at.row * side_.out, at.column * side_.out, shape_.out_height, shape_.out_width, shape_.filters,
              dropped.floats(), to);
  output_tile(shape_.tiling, from, static_cast<size_t>(filters), static_cast<size_t>(rows * filters), to);
}

}  // namespace sluice::kernels
