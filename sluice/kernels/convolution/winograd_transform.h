// The transforms of Winograd's minimal filtering for kernels of 3×3, many channels at a time. Internal to
// this room.
//
// With tiles of input d, kernels g and results y: y = Aᵀ ((G g Gᵀ) ⊙ (Bᵀ d B)) A. The gradient of g is the
// adjoint: Gᵀ ((A y' Aᵀ) ⊙ (Bᵀ d B)) G. The matrices for stride 1 are those of Lavin & Gray, "Fast Algorithms
// for Convolutional Neural Networks" (2016), for F(4, 3) with the points 0, ±1, ±2, ∞. With stride 2 the even
// pixels of a row meet the outer two elements of the kernel, which is F(4, 2) with the points 0, ±1, 2, ∞,
// and the odd ones meet the middle element.
//
// What is transformed lies as [plane, …, channel]: plane p of channel c is at [p * stride + c]. Kernels have
// 36 planes. A tile of stride 1 has as many; one of stride 2 has 81, of which several meet the same kernel
// plane and lie together.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace sluice::kernels {

enum class Tiling {
  kPlain,     // 4×4 results with stride 1
  kHalving,   // 4×4 results with stride 2
  kDoubling,  // 8×8 of the gradient of what kHalving reads: rows and columns from the middle element's on
};

// Of a side of a tile: the pixels that it reads, how far its neighbour's lie from them, its planes, the
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

// Planes of kernels with as many planes of a tile each.
struct PlaneGroup {
  int first_kernel, kernels;
  int first, each;
};
std::span<const PlaneGroup> groups_of(Tiling tiling);

// The channels of a tile's pixels. Of a whole tile, which lies inside the image: from the first pixel on,
// by steps in floats. Of another: a pointer to each, row by row; as many as its side says.
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

// Bᵀ d B of each channel.
void input_tile(Tiling tiling, const TileInputs& from, size_t channels, size_t stride, float* to);
// Aᵀ m A of each filter.
void output_tile(Tiling tiling, const float* from, size_t filters, size_t stride, const TileOutputs& to);
// A y Aᵀ of each filter. Not for kDoubling.
void gradient_tile(Tiling tiling, const TileInputs& from, size_t filters, size_t stride, float* to);
// G g Gᵀ of kernels of 3×3 that lie `step` floats apart, or of these rotated by 180 degrees.
void weight_tile(Tiling tiling, const float* w, size_t step, bool rotated, size_t stride, size_t filters,
                 float* to);
// Gᵀ m G into kernels that lie so.
void kernel_gradient_tile(Tiling tiling, const float* from, size_t filters, size_t stride, size_t step,
                          float* w);

}  // namespace sluice::kernels
