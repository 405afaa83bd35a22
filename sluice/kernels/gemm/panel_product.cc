#include "sluice/kernels/gemm/panel_product.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/gemm/partial_sums.h"
#include "sluice/kernels/gemm/register_tile.h"
#include "sluice/kernels/lanes.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Product = stablehlo::ProductCall;

// What is multiplied together: a panel of so many inner places lies in the first cache, so many rows of a
// with them in the second.
constexpr size_t kInner = 256, kRowsOfBlock = 24 * kTileRows;
// Columns of b that are packed together where they are packed for one thread: half of a second cache.
constexpr size_t kColumnsOfBlock = 256;

// Inner places of a transposed left side that are asked for ahead: each is a short piece of a row that lies
// far from the next.
constexpr size_t kInnerAhead = 8;

// Rows of a piece that only its reader sees (measured): it stays in the second cache.
constexpr size_t kRowsOfOwnPiece = 8 * kTileRows;

// With fewer rows or columns most of a tile is empty, and packing takes longer than the product (measured: a
// vector times a matrix runs at a fifth of a library's speed).
constexpr int64_t kFewest = 4;

// The tiles at the right edge, whose columns are fewer than the registers': by way of memory of their own.
void multiply_edge(TileProduct tiles, size_t rows, size_t columns) {
  const size_t wide = tile_columns();
  const Scratch sums(rows * wide * sizeof(float));
  float* const c = tiles.c;
  const size_t c_step = tiles.c_step;
  const bool add = tiles.add;
  tiles.c = sums.floats();
  tiles.c_step = wide;
  tiles.add = false;
  multiply_tiles(tiles, rows);
  for (size_t row = 0; row < rows; ++row) {
    const float* const from = sums.floats() + row * wide;
    if (add)
      add_floats(c + row * c_step, from, columns);
    else
      std::copy_n(from, columns, c + row * c_step);
  }
}

// Some rows and inner places with all panels.
void multiply_block(const ProductSize& size, const TileRows& a, const float* panels, size_t panel_step,
                    float* c, size_t c_step, bool add) {
  const size_t wide = tile_columns();
  for (size_t column = 0; column < size.columns; column += wide, panels += panel_step) {
    const size_t columns = std::min(wide, size.columns - column);
    TileProduct tiles = {a.first,    a.tile_step, a.row_step, a.inner_step, panels,
                         size.inner, c + column,  c_step,     add};
    tiles.far = column == 0 && a.inner_step == 1;  // not packed, and not yet met
    if (columns == wide)
      multiply_tiles(tiles, size.rows);
    else
      multiply_edge(tiles, size.rows, columns);
  }
}

// A whole right side [inner, columns], packed by all threads.
class PackedRight {
 public:
  PackedRight(const MatrixView& b, size_t inner, size_t columns)
      : panel_step_(panel_floats(inner)), all_(panels_of(columns) * panel_step_ * sizeof(float)) {
    parallel_for(panels_of(columns),
                 [&](size_t i) { pack_panel(b, inner, columns, i, all_.floats() + i * panel_step_); });
  }
  const float* panels() const { return all_.floats(); }
  size_t panel_step() const { return panel_step_; }

 private:
  size_t panel_step_;
  Scratch all_;
};

MatrixView transposed(const MatrixView& matrix) { return {matrix.first, matrix.step, !matrix.transposed}; }

// What is divided among the threads.
enum class Divided { kBatch, kRows, kColumns, kTurnedColumns, kInner };

class PanelProduct : public ProductKernel {
 public:
  explicit PanelProduct(const Product& p)
      : batch_(static_cast<size_t>(p.batch)),
        size_{static_cast<size_t>(p.m), static_cast<size_t>(p.n), static_cast<size_t>(p.k)},
        transposed_a_(p.transposed_a),
        transposed_b_(p.transposed_b) {
    const int64_t sums = (p.m + p.n) * p.k / (8 * p.m * p.n);  // each writes a c
    int64_t parts = 1;
    if (p.batch > 1)
      divided_ = Divided::kBatch, parts = p.batch;
    else if (sums > 1 || (sums == 1 && p.transposed_a))  // whose rows are then packed by one thread each
      divided_ = Divided::kInner, parts = sums;
    else if (is_turned(p))
      divided_ = Divided::kTurnedColumns, parts = p.n / static_cast<int64_t>(kRowsOfBlock);
    else if (p.m >= p.n)
      divided_ = Divided::kRows, parts = p.m / static_cast<int64_t>(kRowsOfBlock);
    else
      divided_ = Divided::kColumns, parts = p.n / kMostTileColumns;
    parts_ = static_cast<size_t>(parts_of_a_call(parts));
    if (divided_ == Divided::kInner) parts_ = std::min(parts_, size_.inner);  // each makes its sum
  }

  using ProductKernel::run;
  base::Status run(void* a, void* b, void* c, const Finish& finish) const override {
    const MatrixView from_a = {static_cast<const float*>(a), transposed_a_ ? size_.rows : size_.inner,
                               transposed_a_};
    const MatrixView from_b = {static_cast<const float*>(b), transposed_b_ ? size_.inner : size_.columns,
                               transposed_b_};
    auto* const to = static_cast<float*>(c);
    if (divided_ == Divided::kBatch) run_batch(from_a, from_b, to);
    if (divided_ == Divided::kRows) run_rows(from_a, from_b, to, finish);
    if (divided_ == Divided::kColumns) run_columns(from_a, from_b, to, finish);
    if (divided_ == Divided::kTurnedColumns) run_turned_columns(from_a, from_b, to, finish);
    if (divided_ == Divided::kInner) run_inner(from_a, from_b, to, finish);
    return {};
  }

 private:
  // Whether cᵀ = b aᵀ is made, because b lies as a left side is read, and packing it moves more than packing
  // a and turning the result.
  static bool is_turned(const Product& p) {
    return !p.transposed_a && p.transposed_b && p.m * (p.k + p.n) < p.k * p.n;
  }

  // body(number, begin, count) for the parts of [0, extent), which begin at multiples of `step`.
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
        multiply(size_, matrix(a, size_.rows * size_.inner, i), matrix(b, size_.inner * size_.columns, i),
                 c + i * size_.rows * size_.columns, size_.columns, false);
    });
  }

  // body(piece), then finish(piece), for some rows and columns: where they belong in c or, without one, in
  // memory of their own.
  template <typename Body>
  void make_piece(size_t row, size_t rows, size_t column, size_t columns, float* c, const Finish& finish,
                  const Body& body) const {
    const Scratch own(c == nullptr ? rows * columns * sizeof(float) : 0);
    const Piece piece =
        c == nullptr ? Piece{row, rows, column, columns, own.floats(), columns}
                     : Piece{row, rows, column, columns, c + row * size_.columns + column, size_.columns};
    body(piece);
    if (finish) finish(piece);
  }

  void run_rows(const MatrixView& a, const MatrixView& b, float* c, const Finish& finish) const {
    const PackedRight packed(b, size_.inner, size_.columns);
    for_parts(size_.rows, kTileRows, [&](size_t, size_t begin, size_t count) {
      const size_t most = c == nullptr ? kRowsOfOwnPiece : count;
      for (size_t row = begin; row < begin + count; row += most)
        make_piece(row, std::min(most, begin + count - row), 0, size_.columns, c, finish,
                   [&](const Piece& piece) {
                     multiply_packed({piece.rows, size_.columns, size_.inner}, a.from(row, 0),
                                     packed.panels(), packed.panel_step(), piece.first, piece.step, false);
                   });
    });
  }

  void run_columns(const MatrixView& a, const MatrixView& b, float* c, const Finish& finish) const {
    for_parts(size_.columns, tile_columns(), [&](size_t, size_t column, size_t columns) {
      make_piece(0, size_.rows, column, columns, c, finish, [&](const Piece& piece) {
        multiply({size_.rows, columns, size_.inner}, a, b.from(0, column), piece.first, piece.step, false);
      });
    });
  }

  void run_turned_columns(const MatrixView& a, const MatrixView& b, float* c, const Finish& finish) const {
    const MatrixView left = transposed(b), right = transposed(a);
    const PackedRight packed(right, size_.inner, size_.rows);
    for_parts(size_.columns, kTileRows, [&](size_t, size_t column, size_t columns) {
      const Scratch turned(columns * size_.rows * sizeof(float));
      multiply_packed({columns, size_.rows, size_.inner}, left.from(column, 0), packed.panels(),
                      packed.panel_step(), turned.floats(), size_.rows, false);
      make_piece(0, size_.rows, column, columns, c, finish, [&](const Piece& piece) {
        transpose(turned.floats(), size_.rows, columns, size_.rows, piece.first, piece.step);
      });
    });
  }

  void run_inner(const MatrixView& a, const MatrixView& b, float* c, const Finish& finish) const {
    const size_t floats = size_.rows * size_.columns;
    const Scratch scratch((c == nullptr ? parts_ : parts_ - 1) * floats * sizeof(float));
    const std::vector<float*> sums = places_of_sums(parts_, floats, c, scratch.floats());
    for_parts(size_.inner, 1, [&](size_t i, size_t first, size_t inner) {
      multiply({size_.rows, size_.columns, inner}, a.from(0, first), b.from(first, 0), sums[i], size_.columns,
               false);
    });
    add_partial_sums(sums, floats);
    finish_rows(sums[0], size_.rows, size_.columns, finish);
  }

  size_t batch_;
  ProductSize size_;
  bool transposed_a_, transposed_b_;
  Divided divided_;
  size_t parts_;
};

}  // namespace

size_t panels_of(size_t columns) { return (columns + tile_columns() - 1) / tile_columns(); }
size_t panel_floats(size_t inner) { return inner * tile_columns(); }

void pack_panel(const MatrixView& matrix, size_t inner, size_t columns, size_t number, float* panel) {
  const size_t wide = tile_columns(), column = number * wide, count = std::min(wide, columns - column);
  if (count == wide) return pack_columns(matrix.at(0, column), matrix.step, matrix.transposed, inner, panel);
  for (size_t p = 0; p < inner; ++p)
    for (size_t i = 0; i < wide; ++i) panel[p * wide + i] = i < count ? *matrix.at(p, column + i) : 0.f;
}

TileRows pack_rows(const MatrixView& a, size_t rows, size_t inner, float* to) {
  const size_t whole = rows / kTileRows * kTileRows;
  for (size_t p = 0; p < inner; ++p) {
    const float* const from = a.at(0, p);
    fetch<false>(a.at(0, p + kInnerAhead), rows);
    float* tile = to + p * kTileRows;
    for (size_t row = 0; row < whole; row += kTileRows, tile += kTileRows * inner)
      std::memcpy(tile, from + row, kTileRows * sizeof(float));  // of a length that the compiler knows
    std::copy_n(from + whole, rows - whole, tile);
  }
  return {to, kTileRows * inner, 1, kTileRows};
}

void multiply_packed(const ProductSize& size, const MatrixView& a, const float* panels, size_t panel_step,
                     float* c, size_t c_step, bool add) {
  const Scratch packed(a.transposed ? kRowsOfBlock * std::min(kInner, size.inner) * sizeof(float) : 0);
  const auto multiply_at = [&](size_t row, size_t first) {
    const ProductSize block = {std::min(kRowsOfBlock, size.rows - row), size.columns,
                               std::min(kInner, size.inner - first)};
    const MatrixView some = a.from(row, first);
    const TileRows rows = a.transposed ? pack_rows(some, block.rows, block.inner, packed.floats())
                                       : TileRows{some.first, kTileRows * a.step, a.step, 1};
    multiply_block(block, rows, panels + panel_floats(first), panel_step, c + row * c_step, c_step,
                   add || first > 0);
  };
  // What stays in the caches: c's rows or, where very many inner places may be added up (a weight's
  // gradient), the panels.
  if (a.transposed) {
    for (size_t first = 0; first < size.inner; first += kInner)
      for (size_t row = 0; row < size.rows; row += kRowsOfBlock) multiply_at(row, first);
  } else {
    for (size_t row = 0; row < size.rows; row += kRowsOfBlock)
      for (size_t first = 0; first < size.inner; first += kInner) multiply_at(row, first);
  }
}

void multiply(const ProductSize& size, const MatrixView& a, const MatrixView& b, float* c, size_t c_step,
              bool add) {
  const size_t most_panels = panels_of(std::min(kColumnsOfBlock, size.columns));
  const Scratch packed(most_panels * panel_floats(std::min(kInner, size.inner)) * sizeof(float));
  for (size_t first = 0; first < size.inner; first += kInner)
    for (size_t column = 0; column < size.columns; column += kColumnsOfBlock) {
      const ProductSize block = {size.rows, std::min(kColumnsOfBlock, size.columns - column),
                                 std::min(kInner, size.inner - first)};
      const size_t panel_step = panel_floats(block.inner);
      for (size_t i = 0; i < panels_of(block.columns); ++i)
        pack_panel(b.from(first, column), block.inner, block.columns, i, packed.floats() + i * panel_step);
      multiply_packed(block, a.from(0, first), packed.floats(), panel_step, c + column, c_step,
                      add || first > 0);
    }
}

std::unique_ptr<ProductKernel> make_panel_product(const Product& p) {
  return has_lanes8() && std::min(p.m, p.n) >= kFewest ? std::make_unique<PanelProduct>(p) : nullptr;
}

}  // namespace sluice::kernels
