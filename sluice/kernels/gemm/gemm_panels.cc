#include "sluice/kernels/gemm/gemm_panels.h"

#include <algorithm>
#include <vector>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/gemm/micro_kernel.h"
#include "sluice/kernels/gemm/partial_sums.h"
#include "sluice/kernels/lanes.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Product = stablehlo::ProductCall;

// The blocks of the loops over K and M: a panel of kBlockK rows is in the L1 cache, together with kBlockM
// rows of a in the L2 cache.
constexpr size_t kBlockK = 256, kBlockM = 24 * kTileRows;
// The block of the loop over N if b is packed for one thread: kBlockK rows of it fill half of an L2 cache.
constexpr size_t kBlockN = 256;

// The most floats of a b that is packed as a whole although it is larger than a: a thread keeps that memory.
constexpr int64_t kMaxPackedB = 8 << 20;

// The rows of a piece that only its reader sees (measured): it stays in the L2 cache.
constexpr size_t kRowsOfOwnPiece = 8 * kTileRows;

// Multiplies the tiles at the right edge, which have fewer columns than the micro-kernel writes, in memory of
// their own.
void multiply_edge(TileGemm tiles, size_t rows, size_t columns) {
  const size_t width = tile_columns();
  const Scratch sums(rows * width * sizeof(float));
  float* const c = tiles.c;
  const size_t c_step = tiles.c_step;
  const bool add = tiles.add;
  tiles.c = sums.floats();
  tiles.c_step = width;
  tiles.add = false;
  tiles.columns = columns;
  multiply_tiles(tiles, rows);
  for (size_t row = 0; row < rows; ++row) {
    const float* const from = sums.floats() + row * width;
    if (add)
      add_floats(c + row * c_step, from, columns);
    else
      std::copy_n(from, columns, c + row * c_step);
  }
}

// Multiplies one block of rows and of K with all panels.
void multiply_block(const GemmSize& size, const TileRows& a, const float* panels, size_t panel_step, float* c,
                    size_t c_step, bool add) {
  const size_t width = tile_columns();
  for (size_t column = 0; column < size.columns; column += width, panels += panel_step) {
    const size_t columns = std::min(width, size.columns - column);
    TileGemm tiles = {a.first, a.tile_step, a.row_step, a.k_step, panels, size.k, c + column, c_step, add};
    tiles.prefetch_a = column == 0 && a.k_step == 1;  // not packed, and not yet read
    if (columns == width)
      multiply_tiles(tiles, size.rows);
    else
      multiply_edge(tiles, size.rows, columns);
  }
}

// A whole b [k, columns], packed by all threads.
class PackedB {
 public:
  PackedB(const MatrixView& b, size_t k, size_t columns)
      : panel_step_(panel_floats(k)), all_(panels_of(columns) * panel_step_ * sizeof(float)) {
    parallel_for(panels_of(columns),
                 [&](size_t i) { pack_panel(b, k, columns, i, all_.floats() + i * panel_step_); });
  }
  const float* panels() const { return all_.floats(); }
  size_t panel_step() const { return panel_step_; }

 private:
  size_t panel_step_;
  Scratch all_;
};

MatrixView transposed(const MatrixView& matrix) { return {matrix.first, matrix.step, !matrix.transposed}; }

// The dimension that is divided among the threads.
enum class Divided { kBatch, kRows, kColumns, kTransposedColumns, kSplitK };

class PanelGemm : public Gemm {
 public:
  explicit PanelGemm(const Product& p)
      : batch_(static_cast<size_t>(p.batch)),
        size_{static_cast<size_t>(p.m), static_cast<size_t>(p.n), static_cast<size_t>(p.k)},
        transposed_a_(p.transposed_a),
        transposed_b_(p.transposed_b) {
    const int64_t sums = (p.m + p.n) * p.k / (8 * p.m * p.n);  // each part writes a c
    const int64_t rows = p.m / static_cast<int64_t>(kBlockM);
    int64_t parts = 1;
    if (p.batch > 1)
      divided_ = Divided::kBatch, parts = p.batch;
    else if (sums > 1)
      divided_ = Divided::kSplitK, parts = sums;
    else if (makes_transpose(p))
      divided_ = Divided::kTransposedColumns, parts = p.n / static_cast<int64_t>(kBlockM);
    else if (p.m >= p.n ||  // or packs a's rows only once
             (p.transposed_a && rows >= threads_of_a_call() && p.k * p.n <= kMaxPackedB))
      divided_ = Divided::kRows, parts = rows;
    else
      divided_ = Divided::kColumns, parts = p.n / kMaxTileColumns;
    parts_ = static_cast<size_t>(parts_of_a_call(parts));
    if (divided_ == Divided::kSplitK) parts_ = std::min(parts_, size_.k);  // each part makes a sum of its own
  }

  using Gemm::run;
  base::Status run(void* a, void* b, void* c, const Epilogue& epilogue) const override {
    const MatrixView from_a = {static_cast<const float*>(a), transposed_a_ ? size_.rows : size_.k,
                               transposed_a_};
    const MatrixView from_b = {static_cast<const float*>(b), transposed_b_ ? size_.k : size_.columns,
                               transposed_b_};
    auto* const to = static_cast<float*>(c);
    if (divided_ == Divided::kBatch) run_batch(from_a, from_b, to);
    if (divided_ == Divided::kRows) run_rows(from_a, from_b, to, epilogue);
    if (divided_ == Divided::kColumns) run_columns(from_a, from_b, to, epilogue);
    if (divided_ == Divided::kTransposedColumns) run_transposed_columns(from_a, from_b, to, epilogue);
    if (divided_ == Divided::kSplitK) run_split_k(from_a, from_b, to, epilogue);
    return {};
  }

 private:
  // Returns whether cᵀ = bᵀ aᵀ is computed instead: b is transposed, so it already is the left side of that
  // product, and packing it would move more than packing a and transposing the result.
  static bool makes_transpose(const Product& p) {
    return !p.transposed_a && p.transposed_b && p.m * (p.k + p.n) < p.k * p.n;
  }

  // Calls body(number, begin, count) for the parts of [0, extent), which begin at multiples of `step`.
  template <typename Body>
  void for_parts(size_t extent, size_t step, const Body& body) const {
    const size_t steps = (extent + step - 1) / step;
    parallel_for(parts_, [&](size_t i) {
      const size_t begin = steps * i / parts_ * step, end = std::min(extent, steps * (i + 1) / parts_ * step);
      if (begin < end) body(i, begin, end - begin);
    });
  }

  void run_batch(const MatrixView& a, const MatrixView& b, float* c) const {
    const auto matrix = [](const MatrixView& all, size_t floats, size_t number) {
      return MatrixView{all.first + number * floats, all.step, all.transposed};
    };
    for_parts(batch_, 1, [&](size_t, size_t begin, size_t count) {
      for (size_t i = begin; i < begin + count; ++i)
        multiply(size_, matrix(a, size_.rows * size_.k, i), matrix(b, size_.k * size_.columns, i),
                 c + i * size_.rows * size_.columns, size_.columns, false);
    });
  }

  // Calls body(piece), then epilogue(piece), for some rows and columns, in their place in c or, without a c,
  // in memory of their own.
  template <typename Body>
  void make_piece(size_t row, size_t rows, size_t column, size_t columns, float* c, const Epilogue& epilogue,
                  const Body& body) const {
    const Scratch own(c == nullptr ? rows * columns * sizeof(float) : 0);
    const Piece piece =
        c == nullptr ? Piece{row, rows, column, columns, own.floats(), columns}
                     : Piece{row, rows, column, columns, c + row * size_.columns + column, size_.columns};
    body(piece);
    if (epilogue) epilogue(piece);
  }

  void run_rows(const MatrixView& a, const MatrixView& b, float* c, const Epilogue& epilogue) const {
    const PackedB packed(b, size_.k, size_.columns);
    for_parts(size_.rows, kTileRows, [&](size_t, size_t begin, size_t count) {
      const size_t max_rows = c == nullptr ? kRowsOfOwnPiece : count;
      for (size_t row = begin; row < begin + count; row += max_rows)
        make_piece(row, std::min(max_rows, begin + count - row), 0, size_.columns, c, epilogue,
                   [&](const Piece& piece) {
                     multiply_packed({piece.rows, size_.columns, size_.k}, a.from(row, 0), packed.panels(),
                                     packed.panel_step(), piece.first, piece.step, false);
                   });
    });
  }

  void run_columns(const MatrixView& a, const MatrixView& b, float* c, const Epilogue& epilogue) const {
    for_parts(size_.columns, tile_columns(), [&](size_t, size_t column, size_t columns) {
      make_piece(0, size_.rows, column, columns, c, epilogue, [&](const Piece& piece) {
        multiply({size_.rows, columns, size_.k}, a, b.from(0, column), piece.first, piece.step, false);
      });
    });
  }

  void run_transposed_columns(const MatrixView& a, const MatrixView& b, float* c,
                              const Epilogue& epilogue) const {
    const MatrixView left = transposed(b), right = transposed(a);
    const PackedB packed(right, size_.k, size_.rows);
    for_parts(size_.columns, kTileRows, [&](size_t, size_t column, size_t columns) {
      const Scratch transpose_of_c(columns * size_.rows * sizeof(float));
      multiply_packed({columns, size_.rows, size_.k}, left.from(column, 0), packed.panels(),
                      packed.panel_step(), transpose_of_c.floats(), size_.rows, false);
      make_piece(0, size_.rows, column, columns, c, epilogue, [&](const Piece& piece) {
        transpose(transpose_of_c.floats(), size_.rows, columns, size_.rows, piece.first, piece.step);
      });
    });
  }

  void run_split_k(const MatrixView& a, const MatrixView& b, float* c, const Epilogue& epilogue) const {
    const size_t floats = size_.rows * size_.columns;
    const Scratch scratch((c == nullptr ? parts_ : parts_ - 1) * floats * sizeof(float));
    const std::vector<float*> sums = sum_buffers(parts_, floats, c, scratch.floats());
    for_parts(size_.k, 1, [&](size_t i, size_t first, size_t k) {
      multiply({size_.rows, size_.columns, k}, a.from(0, first), b.from(first, 0), sums[i], size_.columns,
               false);
    });
    add_partial_sums(sums, floats);
    run_epilogue(sums[0], size_.rows, size_.columns, epilogue);
  }

  size_t batch_;
  GemmSize size_;
  bool transposed_a_, transposed_b_;
  Divided divided_;
  size_t parts_;
};

}  // namespace

size_t panels_of(size_t columns) { return (columns + tile_columns() - 1) / tile_columns(); }
size_t panel_floats(size_t k) { return k * tile_columns(); }

void pack_panel(const MatrixView& matrix, size_t k, size_t columns, size_t number, float* panel) {
  const size_t width = tile_columns(), column = number * width, count = std::min(width, columns - column);
  if (count == width) return pack_columns(matrix.at(0, column), matrix.step, matrix.transposed, k, panel);
  for (size_t p = 0; p < k; ++p)
    for (size_t i = 0; i < width; ++i) panel[p * width + i] = i < count ? *matrix.at(p, column + i) : 0.f;
}

TileRows pack_rows(const MatrixView& a, size_t rows, size_t k, float* to) {
  pack_tiles(a.first, a.step, rows, k, to);
  return {to, kTileRows * k, 1, kTileRows};
}

void multiply_packed(const GemmSize& size, const MatrixView& a, const float* panels, size_t panel_step,
                     float* c, size_t c_step, bool add) {
  const Scratch packed(a.transposed ? kBlockM * std::min(kBlockK, size.k) * sizeof(float) : 0);
  const auto multiply_at = [&](size_t row, size_t first) {
    const GemmSize block = {std::min(kBlockM, size.rows - row), size.columns,
                            std::min(kBlockK, size.k - first)};
    const MatrixView some = a.from(row, first);
    const TileRows rows = a.transposed ? pack_rows(some, block.rows, block.k, packed.floats())
                                       : TileRows{some.first, kTileRows * a.step, a.step, 1};
    multiply_block(block, rows, panels + panel_floats(first), panel_step, c + row * c_step, c_step,
                   add || first > 0);
  };
  // The caches hold c's rows or, with a K that may be very long (a weight's gradient), the panels.
  if (a.transposed) {
    for (size_t first = 0; first < size.k; first += kBlockK)
      for (size_t row = 0; row < size.rows; row += kBlockM) multiply_at(row, first);
  } else {
    for (size_t row = 0; row < size.rows; row += kBlockM)
      for (size_t first = 0; first < size.k; first += kBlockK) multiply_at(row, first);
  }
}

void multiply(const GemmSize& size, const MatrixView& a, const MatrixView& b, float* c, size_t c_step,
              bool add) {
  const size_t max_panels = panels_of(std::min(kBlockN, size.columns));
  const Scratch packed(max_panels * panel_floats(std::min(kBlockK, size.k)) * sizeof(float));
  for (size_t first = 0; first < size.k; first += kBlockK)
    for (size_t column = 0; column < size.columns; column += kBlockN) {
      const GemmSize block = {size.rows, std::min(kBlockN, size.columns - column),
                              std::min(kBlockK, size.k - first)};
      const size_t panel_step = panel_floats(block.k);
      for (size_t i = 0; i < panels_of(block.columns); ++i)
        pack_panel(b.from(first, column), block.k, block.columns, i, packed.floats() + i * panel_step);
      multiply_packed(block, a.from(0, first), packed.floats(), panel_step, c + column, c_step,
                      add || first > 0);
    }
}

std::unique_ptr<Gemm> make_panel_gemm(const Product& p) {
  return has_lanes8() && std::min(p.m, p.n) >= static_cast<int64_t>(kMinExtent)
             ? std::make_unique<PanelGemm>(p)
             : nullptr;
}

}  // namespace sluice::kernels
