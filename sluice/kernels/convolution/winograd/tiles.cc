#include "sluice/kernels/convolution/winograd/tiles.h"

#include <span>
#include <type_traits>
#include <utility>

#include "sluice/kernels/arena.h"

namespace sluice::kernels {

std::optional<WinogradShape> winograd_shape(const stablehlo::ConvolutionCall& c) {
  const auto all_in = [](auto numbers, int64_t min, int64_t max) {
    return std::ranges::all_of(numbers, [&](int64_t n) { return n >= min && n <= max; });
  };
  const bool fits = c.stride.size() == 2 && c.groups == 1 && all_in(std::span(c.w).subspan(2), 3, 3) &&
                    all_in(c.dilation, 1, 1) && all_in(c.padding, 0, 2);
  const bool plain = all_in(c.stride, 1, 1);
  const bool halving = all_in(c.stride, 2, 2) && all_in(c.padding, 1, 1);
  if (!fits || !(plain || halving)) return std::nullopt;
  WinogradShape shape = {.batch = c.x[0],
                         .channels = c.x[1],
                         .filters = c.y[1],
                         .in_height = c.x[2],
                         .in_width = c.x[3],
                         .out_height = c.y[2],
                         .out_width = c.y[3],
                         .padding_height = c.padding[0],
                         .padding_width = c.padding[1],
                         .tiling = plain ? Tiling::kPlain : Tiling::kHalving};
  if (c.kind != stablehlo::ConvolutionCall::Kind::kData) return shape;
  std::swap(shape.channels, shape.filters);
  std::swap(shape.in_height, shape.out_height);
  std::swap(shape.in_width, shape.out_width);
  shape.padding_height = plain ? 2 - shape.padding_height : 0;
  shape.padding_width = plain ? 2 - shape.padding_width : 0;
  shape.rotated = true;
  if (!plain) shape.tiling = Tiling::kDoubling;
  return shape;
}

Tiles::Tiles(const WinogradShape& shape)
    : shape_(shape),
      side_(side_of(shape.tiling)),
      tile_rows_((shape.out_height + side_.out - 1) / side_.out),
      tile_columns_((shape.out_width + side_.out - 1) / side_.out) {}

namespace {

// The pixels of a tile's side that are in the image.
struct Inside {
  int begin, end;
  bool has(int i) const { return i >= begin && i < end; }
};

// Lists the tile's pixels row by row; pixels outside the image point to `outside`. The first pixel, at `row`
// and `column`, may be outside.
template <int kSide, typename Float>
SLUICE_INLINE void list_pixels(Float* image, int64_t row, int64_t column, int64_t height, int64_t width,
                               int64_t floats, Float* outside, TilePixels<Float>& to) {
  to.whole = row >= 0 && column >= 0 && row + kSide <= height && column + kSide <= width;
  if (to.whole) {
    to.first = image + (row * width + column) * floats;
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
      to.each[static_cast<size_t>(i * kSide + j)] = (there ? image : outside) + (there ? place : 0);
    }
}

// Lists the pixels for a side of `side` pixels.
template <typename Float>
void list_pixels(int side, Float* image, int64_t row, int64_t column, int64_t height, int64_t width,
                 int64_t floats, Float* outside, TilePixels<Float>& to) {
  const auto list = [&](auto fixed) {
    list_pixels<fixed.value>(image, row, column, height, width, floats, outside, to);
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
  const Position at = position_of(tile);
  const float* const image = x + at.image * shape_.in_height * shape_.in_width * shape_.channels;
  for (size_t first = 0; first < channels; first += zeros.size()) {
    TileInputs from;
    list_pixels(side_.in, image + first, at.row * side_.step - shape_.padding_height,
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
  const Position at = position_of(tile);
  TileInputs from;
  list_pixels(side_.out, y + at.image * shape_.out_height * shape_.out_width * shape_.filters,
              at.row * side_.out, at.column * side_.out, shape_.out_height, shape_.out_width, shape_.filters,
              static_cast<const float*>(outside.floats()), from);
  gradient_tile(shape_.tiling, from, filters, static_cast<size_t>(rows) * filters, to);
}

void Tiles::transform_output(const float* from, int64_t tile, int64_t rows, int64_t first, int64_t filters,
                             float* y) const {
  const Scratch dropped(static_cast<size_t>(filters) * sizeof(float));
  const Position at = position_of(tile);
  TileOutputs to;
  list_pixels(side_.out, y + at.image * shape_.out_height * shape_.out_width * shape_.filters + first,
              at.row * side_.out, at.column * side_.out, shape_.out_height, shape_.out_width, shape_.filters,
              dropped.floats(), to);
  output_tile(shape_.tiling, from, static_cast<size_t>(filters), static_cast<size_t>(rows * filters), to);
}

}  // namespace sluice::kernels
