// The micro-kernel of GEMM: it keeps a tile of the result in registers. Internal to this room.
#pragma once

#include <cstddef>

#include "sluice/kernels/lanes.h"

namespace sluice::kernels {

constexpr size_t kTileRows = 6;
constexpr size_t kMaxTileColumns = 64;
// Returns the columns of a tile: with AVX-512 64, so that its sums take 24 of 32 registers; else 16, 12 of
// 16.
size_t tile_columns();
template <typename L>  // Lanes…
constexpr size_t kTileVectors = sizeof(L) == sizeof(Lanes16) ? 4 : 2;
template <typename L>
constexpr size_t kTileColumns = kTileVectors<L>* kFloatsOf<L>;

// c = a b, or c + a b, for a tile's columns. b's rows are tile_columns() long and contiguous.
struct TileGemm {
  const float* a;
  size_t tile_step, row_step, k_step;  // from one of a's tiles, rows and columns to the next
  const float* b;
  size_t k;
  float* c;
  size_t c_step;
  bool add;
  size_t columns = kMaxTileColumns;  // to compute: with half of a tile's the others are not touched
  bool prefetch_a = false;           // a comes from memory: later tiles are prefetched
};
// Multiplies tile after tile. Needs has_lanes8().
void multiply_tiles(const TileGemm& product, size_t rows);

// Packs tile_columns() columns of a matrix whose rows are `step` floats long, as b above. transposed: the
// matrix is [columns, k] in memory. Needs has_lanes8().
void pack_columns(const float* matrix, size_t step, bool transposed, size_t k, float* to);
// Packs `rows` columns of a matrix [k, …] whose rows are `step` floats long, as a above, in contiguous tiles:
// [tiles, k, kTileRows]. Needs has_lanes8().
void pack_tiles(const float* matrix, size_t step, size_t rows, size_t k, float* to);
// Transposes a matrix [rows, columns] to [columns, rows]; `from_step` and `to_step` are the floats from one
// row to the next. Needs has_lanes8().
void transpose(const float* from, size_t from_step, size_t rows, size_t columns, float* to, size_t to_step);

constexpr size_t kLineFloats = 16;
// Inlined, because the compiler drops the call of a function that only prefetches.
template <bool kToWrite>
SLUICE_INLINE void prefetch(const float* first, size_t floats) {
  for (size_t i = 0; i < floats; i += kLineFloats) __builtin_prefetch(first + i, kToWrite);
}

}  // namespace sluice::kernels
