#include "sluice/kernels/convolution/algorithm.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>

#include "sluice/kernels/convolution/depthwise_planes.h"
#include "sluice/kernels/convolution/few_pixels.h"
#include "sluice/kernels/convolution/pointwise.h"
#include "sluice/kernels/convolution/winograd/tiles.h"
#include "sluice/kernels/gemm/gemm.h"
#include "sluice/kernels/lanes.h"
#include "sluice/kernels/left_out.h"

namespace sluice::kernels {
namespace {

using Convolution = stablehlo::ConvolutionCall;

bool is_pointwise(const Convolution& c) {
  return c.groups == 1 && std::all_of(c.w.begin() + 2, c.w.end(), [](int64_t k) { return k == 1; }) &&
         std::ranges::all_of(c.padding, [](int64_t p) { return p == 0; });
}

// Returns whether the images are so small that one GEMM between whole images is faster than sliding a window
// over them. Its matrix has a block of weights for each pair of a pixel of x and one of y. Measured with two
// threads and batch 128, the direct algorithm against this one, the three kinds together: 512 → 512 on 1×1
// pixels 7.1 against 0.9 ms, 256 → 256 on 2×2 7.1 against 2.6 ms.
bool is_of_few_pixels(const Convolution& c) {
  constexpr size_t kMaxBlocks = 16;
  constexpr int64_t kMinImages = 32;
  const size_t x_pixels = spatial_size(c.x), y_pixels = spatial_size(c.y);
  if (c.groups != 1 || x_pixels > kMaxBlocks || y_pixels > kMaxBlocks) return false;
  const size_t blocks = x_pixels * y_pixels;
  // A matrix of more blocks costs more than it saves.
  if (blocks > kMaxBlocks) return false;
  // A matrix larger than the weights takes longer to fill than the GEMM of few images saves (measured). The
  // weights' gradient fills none.
  if (c.kind != Convolution::Kind::kWeights && blocks > spatial_size(c.w) && c.x[0] < kMinImages)
    return false;
  // Blocks of zeros are multiplied for nothing.
  return 4 * unconnected_pixels(c) <= blocks;
}

// Chooses Winograd's minimal filtering of 3×3, or kDirect.
Algorithm choose_winograd(const Convolution& c, const WinogradShape& shape) {
  const bool gradient = c.kind == Convolution::Kind::kWeights;
  const int64_t channels = shape.channels, filters = shape.filters;
  const Tiles tiles(shape);
  // The tiles' arithmetic needs registers, an image as large as a tile, and a number of tiles in 32 bits.
  if (!has_lanes8() || !tiles.are_whole()) return Algorithm::kDirect;

  // The transform of the weights costs the same for one tile as for many, so one tile is needed for this
  // number of weights of a tap; with fewer tiles, oneDNN's direct kernels are faster (measured:
  // docs/performance.md). Its kernels for AVX-512 are better than its kernels for AVX2.
  constexpr int64_t kWeightsPerTile = 8192;
  const int64_t weights_per_tile = has_lanes16() ? 2048 : kWeightsPerTile;
  const auto enough_tiles = [&](int64_t weights) { return tiles.count() >= channels * filters / weights; };

  // With 16 channels (32 for the weights' gradient) a library call for a tile's products costs as much as the
  // products: use micro-kernels of a fixed width. With more channels the GEMM of winograd.cc is faster
  // (measured).
  const int64_t max_channels = gradient ? 32 : 16, max_filters = 32;
  if (channels % kNarrowUnit == 0 && filters % kNarrowUnit == 0 && channels <= max_channels &&
      filters <= max_filters && enough_tiles(weights_per_tile) && !is_left_out("narrow_winograd"))
    return Algorithm::kNarrowWinograd;

  // With fewer channels the transforms cost more than the products save (measured). With stride 2 a tile
  // saves less (81 multiplications for 144, not 36), and AVX-512's direct kernels are better.
  int64_t min_channels = gradient ? 32 : 16;
  if (shape.tiling != Tiling::kPlain) min_channels = std::max<int64_t>(min_channels, has_lanes16() ? 32 : 16);
  if (!is_left_out("winograd") && std::min(channels, filters) >= min_channels &&
      enough_tiles(gradient ? kWeightsPerTile : weights_per_tile))
    return Algorithm::kWinograd;
  return Algorithm::kDirect;
}

int64_t elements(const stablehlo::Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// Returns whether the matrix of everything that the taps see is smaller than the activations, which every
// other algorithm would have to reorder: with a stride as large as the window, and with few channels for many
// filters.
bool is_of_few_columns(const Convolution& c) {
  const int64_t seen = c.groups * c.w[1] * elements(c.y) / c.y[1];
  return elements(c.w) / c.w[0] / c.w[1] * seen < elements(c.x) + elements(c.y);
}

}  // namespace

bool has_long_lines(const Convolution& c) {
  const auto all = [](auto from, auto end, int64_t n) {
    return std::all_of(from, end, [n](int64_t i) { return i == n; });
  };
  // If the window sees itself, a plane of x is a line of the matrix. Else, measured: lines of 6 floats with
  // 24 channels take twice as long as columns do, lines of 8 floats with 21 channels half as long.
  const bool sees_itself = all(c.w.begin() + 2, c.w.end(), 1) && all(c.stride.begin(), c.stride.end(), 1) &&
                           all(c.padding.begin(), c.padding.end(), 0);
  return 3 * (sees_itself ? elements(c.y) / c.y[0] / c.y[1] : c.y.back()) >= c.w[1];
}

Algorithm choose_algorithm(const Convolution& c) {
  if (is_depthwise_by_planes(c) && !is_left_out("depthwise_planes")) return Algorithm::kDepthwisePlanes;
  if (c.channels_first && is_of_few_columns(c) && has_long_lines(c) && !is_left_out("planes"))
    return Algorithm::kPlanes;
  // A window of one element is one GEMM of all pixels' channels with the weights, for any stride.
  if (is_pointwise(c) && !is_left_out("pointwise") && find_gemm(pointwise_gemm(c)) != nullptr)
    return Algorithm::kPointwise;
  if (is_of_few_pixels(c) && !is_left_out("few_pixels") && find_gemm(few_pixels_gemm(c)) != nullptr)
    return Algorithm::kFewPixels;
  if (const auto shape = winograd_shape(c)) return choose_winograd(c, *shape);
  // Large or unusual windows, dilation, groups.
  return Algorithm::kDirect;
}

}  // namespace sluice::kernels
