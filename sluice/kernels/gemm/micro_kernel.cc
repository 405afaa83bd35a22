#include "sluice/kernels/gemm/micro_kernel.h"

#include <algorithm>
#include <cstdint>

#include "sluice/kernels/lanes.h"

namespace sluice::kernels {
namespace {

// Multiplies kRows of c's rows, or fewer, and kVectors vectors of its columns.
template <typename L, size_t kVectors, size_t kRows>
SLUICE_INLINE void multiply_rows(const TileGemm& product, size_t rows) {
  if constexpr (kRows > 1)
    if (rows < kRows) return multiply_rows<L, kVectors, kRows - 1>(product, rows);
  const auto [a, tile_step, row_step, k_step, b, k, c, c_step, add, columns, prefetch_a] = product;
  L sums[kRows][kVectors] = {};
  if (add) {
#pragma GCC unroll 12
    for (size_t i = 0; i < kRows; ++i)
#pragma GCC unroll 4
      for (size_t j = 0; j < kVectors; ++j) load(c + i * c_step + j * kFloatsOf<L>, sums[i][j]);
  }
  for (size_t p = 0; p < k; ++p) {
    L b_row[kVectors];
#pragma GCC unroll 4
    for (size_t j = 0; j < kVectors; ++j) load(b + p * kTileColumns<L> + j * kFloatsOf<L>, b_row[j]);
#pragma GCC unroll 12
    for (size_t i = 0; i < kRows; ++i) {
      const float factor = a[i / kTileRows * tile_step + i % kTileRows * row_step + p * k_step];
#pragma GCC unroll 4
      for (size_t j = 0; j < kVectors; ++j) sums[i][j] += factor * b_row[j];
    }
  }
#pragma GCC unroll 12
  for (size_t i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (size_t j = 0; j < kVectors; ++j) store(sums[i][j], c + i * c_step + j * kFloatsOf<L>);
}

constexpr size_t kPrefetchTiles = 2;

// Multiplies kTiles tiles at once; they have the same number of sums as one tile of their total width.
template <typename L, size_t kTiles>
SLUICE_INLINE void multiply_tiles_of(const TileGemm& product, size_t rows) {
  constexpr size_t kRows = kTiles * kTileRows, kVectors = kTileVectors<L> / kTiles;
  TileGemm tile = product;
  for (size_t row = 0; row < rows; row += kRows) {
    for (size_t i = row + kRows; i < std::min(rows, row + 2 * kRows); ++i)
      prefetch<true>(product.c + i * product.c_step, kVectors * kFloatsOf<L>);
    if (product.prefetch_a)
      for (size_t i = kPrefetchTiles * kRows; i < (kPrefetchTiles + 1) * kRows; ++i)
        prefetch<false>(tile.a + i / kTileRows * product.tile_step + i % kTileRows * product.row_step,
                        product.k);
    multiply_rows<L, kVectors, kRows>(tile, rows - row);
    tile.a += kTiles * product.tile_step;
    tile.c += kRows * product.c_step;
  }
}

template <typename L>
SLUICE_INLINE void multiply_tiles_by(const TileGemm& product, size_t rows) {
  if (2 * product.columns <= kTileColumns<L>) return multiply_tiles_of<L, 2>(product, rows);
  multiply_tiles_of<L, 1>(product, rows);
}

// The rows of a matrix that are prefetched while others are packed: too far apart for the hardware's
// prefetcher.
constexpr size_t kPrefetchRows = 12;

// Transposes the 8×8 numbers of eight vectors.
SLUICE_INLINE void transpose_8x8(Lanes8 (&x)[8]) {
  typedef int32_t Places __attribute__((vector_size(32)));
  constexpr Places kLow = {0, 8, 1, 9, 4, 12, 5, 13}, kHigh = {2, 10, 3, 11, 6, 14, 7, 15};
  constexpr Places kLowPairs = {0, 1, 8, 9, 4, 5, 12, 13}, kHighPairs = {2, 3, 10, 11, 6, 7, 14, 15};
  constexpr Places kLowHalves = {0, 1, 2, 3, 8, 9, 10, 11}, kHighHalves = {4, 5, 6, 7, 12, 13, 14, 15};
  Lanes8 pairs[8], fours[8];
#pragma GCC unroll 4
  for (size_t i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shuffle(x[i], x[i + 1], kLow);
    pairs[i + 1] = __builtin_shuffle(x[i], x[i + 1], kHigh);
  }
#pragma GCC unroll 2
  for (size_t i = 0; i < 8; i += 4)
#pragma GCC unroll 2
    for (size_t j = 0; j < 2; ++j) {
      fours[i + 2 * j] = __builtin_shuffle(pairs[i + j], pairs[i + j + 2], kLowPairs);
      fours[i + 2 * j + 1] = __builtin_shuffle(pairs[i + j], pairs[i + j + 2], kHighPairs);
    }
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) {
    x[i] = __builtin_shuffle(fours[i], fours[i + 4], kLowHalves);
    x[i + 4] = __builtin_shuffle(fours[i], fours[i + 4], kHighHalves);
  }
}

template <typename L>
SLUICE_INLINE void pack_columns_by(const float* matrix, size_t step, bool transposed, size_t k, float* to) {
  constexpr size_t kWidth = kTileColumns<L>, kSide = 8;
  if (!transposed) {
    for (size_t p = 0; p < k; ++p) {
      prefetch<false>(matrix + (p + kPrefetchRows) * step, kWidth);
#pragma GCC unroll 4
      for (size_t j = 0; j < kTileVectors<L>; ++j) {
        L some;
        load(matrix + p * step + j * kFloatsOf<L>, some);
        store(some, to + p * kWidth + j * kFloatsOf<L>);
      }
    }
    return;
  }
  size_t p = 0;
  for (; p + kSide <= k; p += kSide)
    for (size_t column = 0; column < kWidth; column += kSide) {
      Lanes8 square[kSide];
#pragma GCC unroll 8
      for (size_t i = 0; i < kSide; ++i) {
        const float* const from = matrix + (column + i) * step + p;
        load(from, square[i]);
        __builtin_prefetch(from + 4 * kLineFloats);
      }
      transpose_8x8(square);
#pragma GCC unroll 8
      for (size_t i = 0; i < kSide; ++i) store(square[i], to + (p + i) * kWidth + column);
    }
  for (; p < k; ++p)
    for (size_t column = 0; column < kWidth; ++column) to[p * kWidth + column] = matrix[column * step + p];
}

// The rows of k that are prefetched: each is a short piece of a row that is far from the next.
constexpr size_t kPrefetchK = 8;

// A register has more floats than a tile has rows: the excess that is written after a tile's row is
// overwritten by the next row, and the excess that is read after a row of the matrix belongs to the next row.
// So the last row is copied separately.
template <typename L>
SLUICE_INLINE void pack_tiles_by(const float* matrix, size_t step, size_t rows, size_t k, float* to) {
  static_assert(kFloatsOf<Lanes8> >= kTileRows);
  const size_t whole = rows / kTileRows * kTileRows;
  for (size_t p = 0; p < k; ++p) {
    const float* const from = matrix + p * step;
    prefetch<false>(from + kPrefetchK * step, rows);
    float* tile = to + p * kTileRows;
    if (p + 1 < k) {
      for (size_t row = 0; row < whole; row += kTileRows, tile += kTileRows * k) {
        Lanes8 some;
        load(from + row, some);
        store(some, tile);
      }
    } else {
      for (size_t row = 0; row < whole; row += kTileRows, tile += kTileRows * k)
        std::copy_n(from + row, kTileRows, tile);
    }
    std::copy_n(from + whole, rows - whole, tile);
  }
}

// Transposes squares of kSide×kSide.
template <typename L>
SLUICE_INLINE void transpose_by(const float* from, size_t from_step, size_t rows, size_t columns, float* to,
                                size_t to_step) {
  constexpr size_t kSide = 8;
  for (size_t column = 0; column < columns; column += kSide) {
    size_t row = 0;
    if (column + kSide <= columns)
      for (; row + kSide <= rows; row += kSide) {
        Lanes8 square[kSide];
#pragma GCC unroll 8
        for (size_t i = 0; i < kSide; ++i) load(from + (row + i) * from_step + column, square[i]);
        transpose_8x8(square);
#pragma GCC unroll 8
        for (size_t i = 0; i < kSide; ++i) store(square[i], to + (column + i) * to_step + row);
      }
    for (; row < rows; ++row)
      for (size_t i = column; i < std::min(columns, column + kSide); ++i)
        to[i * to_step + row] = from[row * from_step + i];
  }
}

}  // namespace

SLUICE_BY_LANES(pack_columns, (const float* matrix, size_t step, bool transposed, size_t k, float* to),
                (matrix, step, transposed, k, to))

SLUICE_BY_LANES(pack_tiles, (const float* matrix, size_t step, size_t rows, size_t k, float* to),
                (matrix, step, rows, k, to))

SLUICE_BY_LANES(transpose,
                (const float* from, size_t from_step, size_t rows, size_t columns, float* to, size_t to_step),
                (from, from_step, rows, columns, to, to_step))

size_t tile_columns() { return has_lanes16() ? kTileColumns<Lanes16> : kTileColumns<Lanes8>; }

SLUICE_BY_LANES(multiply_tiles, (const TileGemm& product, size_t rows), (product, rows))

}  // namespace sluice::kernels
