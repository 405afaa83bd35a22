// Matrix products by a loop of our own, for which the library has no fast kernel or would need copies.
// Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/gemm/gemm.h"

namespace sluice::kernels {

// A matrix in memory, row by row, `step` floats from one row to the next; or its transpose.
struct MatrixView {
  const float* first;
  size_t step;
  bool transposed;

  const float* at(size_t row, size_t column) const {
    return first + (transposed ? column * step + row : row * step + column);
  }
  MatrixView from(size_t row, size_t column) const { return {at(row, column), step, transposed}; }
};

// A matrix [k, columns] packed in panels of tile_columns(), padded with zeros: [panels, k, columns of a
// panel].
size_t panels_of(size_t columns);
size_t panel_floats(size_t k);
void pack_panel(const MatrixView& matrix, size_t k, size_t columns, size_t number, float* panel);

// Rows of a: as they are in memory, or packed as [tiles, k, kTileRows].
struct TileRows {
  const float* first;
  size_t tile_step, row_step, k_step;
};
// Packs the rows of a matrix that is transposed in memory: [k, rows]. Needs has_lanes8().
TileRows pack_rows(const MatrixView& a, size_t rows, size_t k, float* to);

// The extents of c [rows, columns] = a b, or c + a b; k is the inner dimension.
struct GemmSize {
  size_t rows, columns, k;
};
// Multiplies on the calling thread. b: packed panels, `panel_step` floats apart, of a matrix of `size.k` rows
// or more; c's rows are `c_step` floats apart. Needs has_lanes8().
void multiply_packed(const GemmSize& size, const MatrixView& a, const float* panels, size_t panel_step,
                     float* c, size_t c_step, bool add);
void multiply(const GemmSize& size, const MatrixView& a, const MatrixView& b, float* c, size_t c_step,
              bool add);

// Makes a kernel; null if the CPU lacks the registers, or if the product is nearly a vector. Without a batch
// its run() accepts a null c: then each piece is in its thread's memory, and only until epilogue returns.
std::unique_ptr<Gemm> make_panel_gemm(const stablehlo::ProductCall& p);

}  // namespace sluice::kernels
