#include "sluice/kernels/rows/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/gemm/partial_sums.h"
#include "sluice/kernels/lanes.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

// The elements that a thread processes before it takes the next rows. Blocks of a gradient have sums of their
// own.
constexpr size_t kPiece = 16 << 10, kBlock = 32 << 10;

// The rows that are processed together: their sums do not wait for each other, and the numbers of a column
// are read once for all of them.
constexpr size_t kRowsAtOnce = 4;

// The columns that are added up before their sum is added to the total: one sum over a long row would lose
// digits.
constexpr size_t kColumnsOfSum = 4096;

// Calls body(column, type) for all columns, with the type L for as many columns as L holds or, at the end,
// with the type of one float.
template <typename L, typename Body>
SLUICE_INLINE void for_columns(size_t first, size_t columns, const Body& body) {
  size_t c = first;
  for (; c + kFloatsOf<L> <= columns; c += kFloatsOf<L>) body(c, std::type_identity<L>());
  for (; c < columns; ++c) body(c, std::type_identity<float>());
}
template <typename L, typename Body>
SLUICE_INLINE void for_columns(size_t columns, const Body& body) {
  for_columns<L>(0, columns, body);
}

// The smallest error of a mean that is corrected, in deviations of a row.
constexpr float kMissedThatShows = 1e-6f;

// A sum over columns.
template <typename L>
class Sum {
 public:
  SLUICE_INLINE void add(const L& values) { lanes_ += values; }
  SLUICE_INLINE void add(const float& value) { last_ += value; }
  SLUICE_INLINE float total() const {
    float sums[kFloatsOf<L>];
    store(lanes_, sums);
    for (size_t half = kFloatsOf<L> / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) sums[i] += sums[half + i];
    return sums[0] + last_;
  }

 private:
  L lanes_ = {};
  float last_ = 0;
};

// Computes kSums totals over columns: add(sums, column, type) adds a column's numbers to the sums.
template <typename L, size_t kSums, typename Add>
SLUICE_INLINE void sum_columns(size_t columns, float* totals, const Add& add) {
  for (size_t k = 0; k < kSums; ++k) totals[k] = 0;
  for (size_t first = 0; first < columns; first += kColumnsOfSum) {
    Sum<L> sums[kSums];
    for_columns<L>(first, std::min(columns, first + kColumnsOfSum),
                   [&](size_t c, auto type) { add(sums, c, type); });
#pragma GCC unroll 16
    for (size_t k = 0; k < kSums; ++k) totals[k] += sums[k].total();
  }
}

template <typename L, size_t kRows>
SLUICE_INLINE void normalize(const LayerNorm& call, size_t row) {
  const auto [rows, columns, all_x, weights, biases, eps, all_y, means, inverses] = call;
  const float* const x = all_x + row * columns;
  float* const y = all_y + row * columns;
  const float count = static_cast<float>(columns);
  // Sums distances from the first element: the rounding error of their mean depends on the row's spread, and
  // not on a large mean. `missed` is the part that the mean as a float leaves out.
  float pivot[kRows], mean[kRows], missed[kRows], inverse[kRows], offset[kRows];
#pragma GCC unroll 4
  for (size_t k = 0; k < kRows; ++k) pivot[k] = x[k * columns];
  float totals[kRows];
  sum_columns<L, kRows>(columns, totals, [&](Sum<L>* sums, size_t c, auto type) {
#pragma GCC unroll 4
    for (size_t k = 0; k < kRows; ++k) {
      typename decltype(type)::type value;
      load(x + k * columns + c, value);
      value -= pivot[k];
      sums[k].add(value);
    }
  });
#pragma GCC unroll 4
  for (size_t k = 0; k < kRows; ++k) {
    const double exact = static_cast<double>(pivot[k]) + static_cast<double>(totals[k] / count);
    mean[k] = means[row + k] = static_cast<float>(exact);
    missed[k] = static_cast<float>(exact - static_cast<double>(mean[k]));
  }
  sum_columns<L, kRows>(columns, totals, [&](Sum<L>* squares, size_t c, auto type) {
#pragma GCC unroll 4
    for (size_t k = 0; k < kRows; ++k) {
      typename decltype(type)::type value;
      load(x + k * columns + c, value);
      value -= mean[k];
      squares[k].add(value * value);
    }
  });
#pragma GCC unroll 4
  for (size_t k = 0; k < kRows; ++k) {
    const float variance = totals[k] / count - missed[k] * missed[k];
    inverse[k] = inverses[row + k] = 1.f / std::sqrt((variance < 0 ? 0 : variance) + eps);
    offset[k] = missed[k] * inverse[k];
  }
  for_columns<L>(columns, [&](size_t c, auto type) {
    typename decltype(type)::type value, weight, bias;
    load(weights + c, weight);
    load(biases + c, bias);
#pragma GCC unroll 4
    for (size_t k = 0; k < kRows; ++k) {
      load(x + k * columns + c, value);
      store(((value - mean[k]) * inverse[k] - offset[k]) * weight + bias, y + k * columns + c);
    }
  });
}

// Makes grad_x, and adds to row_sums, unless it is null, the sums for the weight, followed by the sums for
// the bias.
template <typename L, size_t kRows>
SLUICE_INLINE void normalize_back(const LayerNormGradient& call, size_t row, float* row_sums) {
  const size_t columns = call.columns;
  const float *const all_grad_y = call.grad_y + row * columns, *const all_x = call.x + row * columns;
  const float* const weights = call.weight;
  float* const to = call.grad_x + row * columns;
  const float share = 1.f / static_cast<float>(columns);
  float mean[kRows], inverse[kRows], missed[kRows], shift[kRows], slope[kRows], totals[3 * kRows];
  float *const distances = totals, *const sums = distances + kRows, *const products = sums + kRows;
#pragma GCC unroll 4
  for (size_t k = 0; k < kRows; ++k) mean[k] = call.mean[row + k], inverse[k] = call.inverse[row + k];
  sum_columns<L, 3 * kRows>(columns, totals, [&](Sum<L>* all, size_t c, auto type) {
    typename decltype(type)::type weight, grad_y, x, grad_weight = {}, grad_bias = {};
    load(weights + c, weight);
#pragma GCC unroll 4
    for (size_t k = 0; k < kRows; ++k) {
      load(all_grad_y + k * columns + c, grad_y);
      load(all_x + k * columns + c, x);
      x -= mean[k];
      all[k].add(x);
      x = x * inverse[k] * grad_y;
      grad_weight += x;
      grad_bias += grad_y;
      all[kRows + k].add(grad_y * weight);
      all[2 * kRows + k].add(x * weight);
    }
    if (row_sums == nullptr) return;
    load(row_sums + c, grad_y);
    load(row_sums + columns + c, x);
    store(grad_y + grad_weight, row_sums + c);
    store(x + grad_bias, row_sums + columns + c);
  });
  float max_missed = 0;
#pragma GCC unroll 4
  for (size_t k = 0; k < kRows; ++k) {
    // The stored mean is rounded: its error is the mean of the distances from it.
    missed[k] = distances[k] * share * inverse[k];
    shift[k] = sums[k] * share;
    const float product = products[k] * share - missed[k] * shift[k];
    shift[k] -= missed[k] * product;
    slope[k] = product * inverse[k];
    max_missed = std::max(max_missed, std::abs(missed[k]));
  }
  // The error is visible in the weight's gradient only if a mean is many deviations away from 0.
  if (row_sums != nullptr && max_missed >= kMissedThatShows)
    for_columns<L>(columns, [&](size_t c, auto type) {
      typename decltype(type)::type grad_y, sum;
      load(row_sums + c, sum);
#pragma GCC unroll 4
      for (size_t k = 0; k < kRows; ++k) {
        load(all_grad_y + k * columns + c, grad_y);
        sum -= grad_y * missed[k];
      }
      store(sum, row_sums + c);
    });
  for_columns<L>(columns, [&](size_t c, auto type) {
    typename decltype(type)::type weight, grad_y, x;
    load(weights + c, weight);
#pragma GCC unroll 4
    for (size_t k = 0; k < kRows; ++k) {
      load(all_grad_y + k * columns + c, grad_y);
      load(all_x + k * columns + c, x);
      store((grad_y * weight - shift[k] - (x - mean[k]) * slope[k]) * inverse[k], to + k * columns + c);
    }
  });
}

template <typename L>
SLUICE_INLINE void normalize_rows_by(const LayerNorm& call, size_t first, size_t count) {
  size_t r = first;
  for (; r + kRowsAtOnce <= first + count; r += kRowsAtOnce) normalize<L, kRowsAtOnce>(call, r);
  for (; r < first + count; ++r) normalize<L, 1>(call, r);
}
template <typename L>
SLUICE_INLINE void normalize_rows_back_by(const LayerNormGradient& call, size_t first, size_t count,
                                          float* row_sums) {
  size_t r = first;
  for (; r + kRowsAtOnce <= first + count; r += kRowsAtOnce)
    normalize_back<L, kRowsAtOnce>(call, r, row_sums);
  for (; r < first + count; ++r) normalize_back<L, 1>(call, r, row_sums);
}

SLUICE_BY_LANES(normalize_rows, (const LayerNorm& call, size_t first, size_t count), (call, first, count))
SLUICE_BY_LANES(normalize_rows_back,
                (const LayerNormGradient& call, size_t first, size_t count, float* row_sums),
                (call, first, count, row_sums))

// Returns the number of rows in a piece of `piece` elements.
size_t rows_of_piece(size_t piece, size_t columns) {
  return std::max<size_t>(1, piece / std::max<size_t>(1, columns) / kRowsAtOnce) * kRowsAtOnce;
}

// A constant in place of a missing weight or bias: one number for each column.
class Constant {
 public:
  Constant(float number, size_t columns) : memory_(columns * sizeof(float)) {
    std::fill_n(memory_.floats(), columns, number);
  }
  const float* row() const { return memory_.floats(); }

 private:
  Scratch memory_;
};

}  // namespace

void layer_norm(const LayerNorm& call) {
  const Constant one(1, call.weight != nullptr ? 0 : call.columns);
  const Constant zero(0, call.bias != nullptr ? 0 : call.columns);
  LayerNorm filled = call;
  if (call.weight == nullptr) filled.weight = one.row();
  if (call.bias == nullptr) filled.bias = zero.row();
  const auto work = has_lanes8() ? normalize_rows : normalize_rows_by<Lanes8>;
  const size_t piece = rows_of_piece(kPiece, call.columns);
  parallel_pieces(call.rows, piece, [&](size_t first, size_t rows) { work(filled, first, rows); });
}

void layer_norm_gradient(const LayerNormGradient& call) {
  const Constant one(1, call.weight != nullptr ? 0 : call.columns);
  LayerNormGradient filled = call;
  if (call.weight == nullptr) filled.weight = one.row();
  const auto work = has_lanes8() ? normalize_rows_back : normalize_rows_back_by<Lanes8>;
  const size_t block = rows_of_piece(kBlock, call.columns), blocks = (call.rows + block - 1) / block;
  const size_t width = call.grad_weight != nullptr ? 2 * call.columns : 0;
  const Scratch sums(blocks * width * sizeof(float));
  parallel_for(blocks, [&](size_t i) {
    float* const row_sums = width > 0 ? sums.floats() + i * width : nullptr;
    std::fill_n(row_sums, width, 0.f);
    work(filled, i * block, std::min(block, call.rows - i * block), row_sums);
  });
  if (width == 0) return;
  for_joins(call.columns, [&](size_t first, size_t count) {
    join_sums(blocks, sums.floats() + first, width, count, call.grad_weight + first);
    join_sums(blocks, sums.floats() + call.columns + first, width, count, call.grad_bias + first);
  });
}

namespace {

// How a tensor divides into rows and columns.
struct Split {
  size_t rows, columns;
};
// Splits x by the dims of a tensor with a number for each row: x's dims, with 1 for the last ones, which are
// the columns.
base::Result<Split> split_of(const Call& call, const Tensor& x, const Tensor& of_rows) {
  size_t first = 0;  // the first of the columns' dims
  const bool same_rank = x.rank() == of_rows.rank();
  while (same_rank && first < x.rank() && x.dims[first] == of_rows.dims[first]) ++first;
  bool fits = same_rank;
  for (size_t d = first; fits && d < x.rank(); ++d) fits = of_rows.dims[d] == 1;
  if (!fits)
    return call.refuse("means [", base::join(of_rows.dims, ","), "] of an input [", base::join(x.dims, ","),
                       "], expected its dims with 1 for the last ones");
  return Split{of_rows.elements(), x.elements() / of_rows.elements()};
}

// Reads a parameter of the columns of x.
base::Result<float*> columns_of(const Call& call, base::Result<Tensor> parameter, const Tensor& x,
                                size_t columns) {
  SLUICE_TRY(const Tensor found, std::move(parameter));
  const size_t rank = found.rank();
  if (found.elements() == columns && rank <= x.rank() && std::ranges::equal(x.dims.last(rank), found.dims))
    return found.data;
  return call.refuse("a parameter [", base::join(found.dims, ","), "] for ", columns,
                     " columns of an input [", base::join(x.dims, ","), "], expected its last dims");
}

}  // namespace

base::Status call_layer_norm(const Call& call) {
  SLUICE_OK(call.takes({{2, 3}, {3, 3}, {4, 3}}));
  SLUICE_TRY(const Tensor x, call.filled_operand(0, "x", 1));
  SLUICE_TRY(const Tensor eps, call.operand(1, "eps", {}));
  SLUICE_TRY(const Tensor y, call.result(0, "y", x.dims));
  SLUICE_TRY(const Tensor mean, call.result(1, "mean"));
  SLUICE_TRY(const Split size, split_of(call, x, mean));
  SLUICE_TRY(const Tensor inverse, call.result(2, "inverse", mean.dims));
  LayerNorm work{.rows = size.rows,
                 .columns = size.columns,
                 .x = x.data,
                 .eps = *eps.data,
                 .y = y.data,
                 .mean = mean.data,
                 .inverse = inverse.data};
  if (call.num_operands() > 2) {
    SLUICE_TRY(work.weight, columns_of(call, call.operand(2, "weight"), x, size.columns));
  }
  if (call.num_operands() > 3) {
    SLUICE_TRY(work.bias, columns_of(call, call.operand(3, "bias"), x, size.columns));
  }
  layer_norm(work);
  return {};
}

base::Status call_layer_norm_gradient(const Call& call) {
  SLUICE_OK(call.takes({{4, 1}, {5, 1}, {4, 3}, {5, 3}}));
  SLUICE_TRY(const Tensor grad_y, call.filled_operand(0, "grad_y", 1));
  SLUICE_TRY(const Tensor x, call.operand(1, "x", grad_y.dims));
  SLUICE_TRY(const Tensor mean, call.operand(2, "mean"));
  SLUICE_TRY(const Split size, split_of(call, x, mean));
  SLUICE_TRY(const Tensor inverse, call.operand(3, "inverse", mean.dims));
  SLUICE_TRY(const Tensor to, call.result(0, "grad_x", x.dims));
  LayerNormGradient work{.rows = size.rows,
                         .columns = size.columns,
                         .grad_y = grad_y.data,
                         .x = x.data,
                         .mean = mean.data,
                         .inverse = inverse.data,
                         .grad_x = to.data};
  if (call.num_operands() > 4) {
    SLUICE_TRY(work.weight, columns_of(call, call.operand(4, "weight"), x, size.columns));
  }
  if (call.num_results() > 1) {
    SLUICE_TRY(work.grad_weight, columns_of(call, call.result(1, "grad_weight"), x, size.columns));
    SLUICE_TRY(work.grad_bias, columns_of(call, call.result(2, "grad_bias"), x, size.columns));
  }
  layer_norm_gradient(work);
  return {};
}

}  // namespace sluice::kernels
