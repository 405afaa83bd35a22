// Matrix products by a loop of our own: where the library has none of its fast ones, or would have to be
// given copies. Internal to this room.
#pragma once

#include <memory>

#include "sluice/kernels/gemm/gemm.h"

namespace sluice::kernels {

// A matrix in memory, row by row, `step` floats from one row to the next; or what it is transposed to.
struct MatrixView {
  const float* first;
  size_t step;
  bool transposed;

  const float* at(size_t row, size_t column) const {
    return first + (transposed ? column * step + row : row * step + column);
  }
  MatrixView from(size_t row, size_t column) const { return {at(row, column), step, transposed}; }
};

// A matrix [k, columns] packed in panels of tile_columns(), filled up with zeros: [panels, k, columns
// of a panel].
size_t panels_of(size_t columns);
size_t panel_floats(size_t k);
void pack_panel(const MatrixView& matrix, size_t k, size_t columns, size_t number, float* panel);

// Rows of a: as they lie, or packed as [tiles, k, kTileRows].
struct TileRows {
  const float* first;
  size_t tile_step, row_step, k_step;
};
// Of a matrix that lies transposed: [k, rows]. Where has_lanes8().
TileRows pack_rows(const MatrixView& a, size_t rows, size_t k, float* to);

// c [rows, columns] = a b, or c + a b. c's rows lie c_step floats apart.
struct GemmSize {
  size_t rows, columns, k;
};
// b: packed panels, `panel_step` floats apart, of a matrix of so many rows (K) or more. On the calling
// thread; where has_lanes8().
void multiply_packed(const GemmSize& size, const MatrixView& a, const float* panels, size_t panel_step,
                     float* c, size_t c_step, bool add);
void multiply(const GemmSize& size, const MatrixView& a, const MatrixView& b, float* c, size_t c_step,
              bool add);

// Null where the CPU has no registers for it, or where it is nearly a vector. Without a batch its run takes a
// c that is null too: then a piece lies in its thread's memory, and only until epilogue returns.
std::unique_ptr<Gemm> make_panel_gemm(const stablehlo::ProductCall& p);

}  // namespace sluice::kernels
