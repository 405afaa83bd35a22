// The transforms of Winograd's minimal filtering for kernels of 3×3, many channels at a time. Internal to
// this room.
//
// With tiles of input d, kernels g and results y: y = Aᵀ ((G g Gᵀ) ⊙ (Bᵀ d B)) A. The gradient of g is the
// adjoint: Gᵀ ((A y' Aᵀ) ⊙ (Bᵀ d B)) G. The matrices for stride 1 are from Lavin & Gray, "Fast Algorithms for
// Convolutional Neural Networks" (2016), for F(4, 3) with the points 0, ±1, ±2, ∞. With stride 2 the even
// pixels of a row meet the outer two elements of the kernel, which is F(4, 2) with the points 0, ±1, 2, ∞,
// and the odd ones meet the middle element.
//
// Transformed data has the order [plane, …, channel]: plane p of channel c is at [p * stride + c]. Kernels
// have 36 planes. A tile of stride 1 also has 36; a tile of stride 2 has 81, and several of them meet the
// same kernel plane and are contiguous.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace sluice::kernels {

enum class Tiling {
  kPlain,     // 4×4 results with stride 1
  kHalving,   // 4×4 results with stride 2
  kDoubling,  // 8×8 of the gradient of kHalving's input: rows and columns from the middle element's on
};

// One side of a tile: the pixels that it reads, the distance to its neighbour's pixels, its planes, and the
// pixels of its result.
struct TileSide {
  int in, step, planes, out;
};
constexpr TileSide side_of(Tiling tiling) {
  if (tiling == Tiling::kPlain) return {6, 4, 6, 4};
  return tiling == Tiling::kHalving ? TileSide{9, 8, 9, 4} : TileSide{5, 4, 9, 8};
}
constexpr int planes_of(Tiling tiling) { return side_of(tiling).planes * side_of(tiling).planes; }

constexpr int kKernelPlanes = 36;

// Planes of kernels that each meet the same number of planes of a tile.
struct PlaneGroup {
  int first_kernel, kernels;
  int first, each;
};
std::span<const PlaneGroup> groups_of(Tiling tiling);

// The channels of a tile's pixels. A whole tile is inside the image: its pixels follow the first one in steps
// of floats. Another tile has a pointer to each pixel, row by row, in rows of the
// side's `in` or `out`.
constexpr size_t kMaxPixels = 81;
template <typename Float>
struct TilePixels {
  bool whole;
  Float* first;
  size_t row_step, column_step;
  std::array<Float*, kMaxPixels> each;
};
using TileInputs = TilePixels<const float>;
using TileOutputs = TilePixels<float>;

// Computes Bᵀ d B of each channel.
void input_tile(Tiling tiling, const TileInputs& from, size_t channels, size_t stride, float* to);
// Computes Aᵀ m A of each filter.
void output_tile(Tiling tiling, const float* from, size_t filters, size_t stride, const TileOutputs& to);
// Computes A y Aᵀ of each filter. Not for kDoubling.
void gradient_tile(Tiling tiling, const TileInputs& from, size_t filters, size_t stride, float* to);
// Computes G g Gᵀ of kernels of 3×3 that are `step` floats apart, or of these rotated by 180 degrees.
void weight_tile(Tiling tiling, const float* w, size_t step, bool rotated, size_t stride, size_t filters,
                 float* to);
// Computes Gᵀ m G into kernels of 3×3 that are `step` floats apart.
void kernel_gradient_tile(Tiling tiling, const float* from, size_t filters, size_t stride, size_t step,
                          float* w);

}  // namespace sluice::kernels
