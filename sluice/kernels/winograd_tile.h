// The transforms of Winograd's F(4×4, 3×3), many channels at a time. Internal to this room.
//
// The matrices are those of Lavin & Gray, "Fast Algorithms for Convolutional Neural Networks" (2016), for the
// points 0, ±1, ±2, ∞. With input tiles d, kernels g and results y: y = Aᵀ ((G g Gᵀ) ⊙ (Bᵀ d B)) A. The
// gradient of g is the adjoint: Gᵀ ((A y' Aᵀ) ⊙ (Bᵀ d B)) G.
//
// What is transformed lies as [point, …, channel]: point p of channel c is at [p * stride + c].
#pragma once

#include <array>
#include <cstddef>

namespace sluice::kernels {

constexpr int kTileOut = 4, kTileIn = 6, kTilePoints = kTileIn * kTileIn;

// Pointers to the channels of a tile's pixels, row by row.
using TileInputs = std::array<const float*, kTilePoints>;
using TileOutputs = std::array<float*, kTileOut * kTileOut>;
using TileGradients = std::array<const float*, kTileOut * kTileOut>;

// Bᵀ d B of each channel.
void input_tile(const TileInputs& from, size_t channels, size_t stride, float* to);
// Aᵀ m A of each filter.
void output_tile(const float* from, size_t filters, size_t stride, const TileOutputs& to);
// A y Aᵀ of each filter.
void gradient_tile(const TileGradients& from, size_t filters, size_t stride, float* to);
// G g Gᵀ of kernels of 3×3 that lie `step` floats apart, or of these turned by half a circle.
void weight_tile(const float* w, size_t step, bool turned, size_t stride, size_t filters, float* to);
// Gᵀ m G into kernels that lie so.
void kernel_gradient_tile(const float* from, size_t filters, size_t stride, size_t step, float* w);

}  // namespace sluice::kernels
