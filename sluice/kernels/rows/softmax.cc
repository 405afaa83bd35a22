#include "sluice/kernels/rows/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/lanes.h"
#include "sluice/kernels/rows/exponential.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

// The elements that a thread processes before it takes the next rows.
constexpr size_t kPiece = 16 << 10;

template <typename L>
SLUICE_INLINE float total(const L& sums) {
  float sum = 0;
  for (size_t i = 0; i < kFloatsOf<L>; ++i) sum += sums[i];
  return sum;
}

// Writes the row's distances from its maximum (not of NaN) to `to`, or their exponentials, and returns the
// sum of the exponentials. `columns` must be a multiple of L's floats.
template <typename L>
SLUICE_INLINE float shift(const float* x, size_t columns, float* to, bool exponentials) {
  L maxima, value, sums = {};
  load(x, maxima);
  for (size_t c = kFloatsOf<L>; c < columns; c += kFloatsOf<L>) {
    load(x + c, value);
    maxima = value > maxima ? value : maxima;
  }
  float max = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < kFloatsOf<L>; ++i) max = maxima[i] > max ? maxima[i] : max;
  for (size_t c = 0; c < columns; c += kFloatsOf<L>) {
    load(x + c, value);
    value -= max;
    L exp = value;
    exponential(exp);
    sums += exp;
    store(exponentials ? exp : value, to + c);
  }
  return total(sums);
}

template <typename L>
SLUICE_INLINE void softmax_row(const float* x, size_t columns, bool logarithm, float* y) {
  const float sum = shift<L>(x, columns, y, !logarithm);
  const float scale = logarithm ? 1.f : 1.f / sum, step = logarithm ? std::log(sum) : 0.f;
  for (size_t c = 0; c < columns; c += kFloatsOf<L>) {
    L value;
    load(y + c, value);
    store(value * scale - step, y + c);
  }
}

template <typename L>
SLUICE_INLINE void gradient_row(const float* grad_y, const float* y, size_t columns, bool logarithm,
                                float* to) {
  L sums = {}, grad, value_y;
  for (size_t c = 0; c < columns; c += kFloatsOf<L>) {
    load(grad_y + c, grad);
    load(y + c, value_y);
    sums += logarithm ? grad : grad * value_y;
  }
  const float sum = total(sums);
  for (size_t c = 0; c < columns; c += kFloatsOf<L>) {
    load(grad_y + c, grad);
    load(y + c, value_y);
    if (logarithm) {
      exponential(value_y);
      store(grad - value_y * sum, to + c);
    } else {
      store((grad - sum) * value_y, to + c);
    }
  }
}

template <typename L>
SLUICE_INLINE void softmax_rows_by(size_t rows, size_t columns, const float* x, bool logarithm, float* y) {
  for (size_t r = 0; r < rows; ++r) softmax_row<L>(x + r * columns, columns, logarithm, y + r * columns);
}
template <typename L>
SLUICE_INLINE void gradient_rows_by(size_t rows, size_t columns, const float* grad_y, const float* y,
                                    bool logarithm, float* to) {
  for (size_t r = 0; r < rows; ++r)
    gradient_row<L>(grad_y + r * columns, y + r * columns, columns, logarithm, to + r * columns);
}

SLUICE_BY_LANES(softmax_rows, (size_t rows, size_t columns, const float* x, bool logarithm, float* y),
                (rows, columns, x, logarithm, y))
SLUICE_BY_LANES(gradient_rows,
                (size_t rows, size_t columns, const float* grad_y, const float* y, bool logarithm, float* to),
                (rows, columns, grad_y, y, logarithm, to))

// Returns how many columns are processed at once. A CPU with smaller registers uses several of them.
size_t lanes() { return has_lanes16() ? kFloatsOf<Lanes16> : kFloatsOf<Lanes8>; }

// Calls body(first row, rows) on the threads of a call.
template <typename Body>
void for_pieces(size_t rows, size_t columns, const Body& body) {
  const size_t piece = std::max<size_t>(1, kPiece / std::max<size_t>(1, columns));
  parallel_pieces(rows, piece, body);
}

// A copy of a row whose length is not a multiple of the lanes, padded with a number that has no effect.
class PaddedRow {
 public:
  PaddedRow(size_t columns, float padding)
      : columns_(columns), padding_(padding), scratch_(padded() * sizeof(float)) {}
  size_t padded() const { return (columns_ + lanes() - 1) / lanes() * lanes(); }
  float* row() const { return scratch_.floats(); }
  float* row(const float* from) const {
    std::copy_n(from, columns_, row());
    std::fill(row() + columns_, row() + padded(), padding_);
    return row();
  }

 private:
  size_t columns_;
  float padding_;
  Scratch scratch_;
};

}  // namespace

void softmax(size_t rows, size_t columns, const float* x, bool logarithm, float* y) {
  const auto work = has_lanes8() ? softmax_rows : softmax_rows_by<Lanes8>;
  for_pieces(rows, columns, [&](size_t first, size_t count) {
    const size_t begin = first * columns;
    if (columns % lanes() == 0) return work(count, columns, x + begin, logarithm, y + begin);
    const PaddedRow row(columns, -std::numeric_limits<float>::infinity());
    for (size_t at = begin; at < begin + count * columns; at += columns) {
      work(1, row.padded(), row.row(x + at), logarithm, row.row());
      std::copy_n(row.row(), columns, y + at);
    }
  });
}

void softmax_gradient(size_t rows, size_t columns, const float* grad_y, const float* y, bool logarithm,
                      float* grad_x) {
  const auto work = has_lanes8() ? gradient_rows : gradient_rows_by<Lanes8>;
  for_pieces(rows, columns, [&](size_t first, size_t count) {
    const size_t begin = first * columns;
    if (columns % lanes() == 0)
      return work(count, columns, grad_y + begin, y + begin, logarithm, grad_x + begin);
    const PaddedRow grad(columns, 0), value_y(columns, 0);
    for (size_t at = begin; at < begin + count * columns; at += columns) {
      work(1, grad.padded(), grad.row(grad_y + at), value_y.row(y + at), logarithm, grad.row());
      std::copy_n(grad.row(), columns, grad_x + at);
    }
  });
}

base::Status call_softmax(const Call& call) {
  SLUICE_OK(call.takes({{1, 1}}));
  SLUICE_TRY(const bool logarithm, call.flag("logarithm"));
  SLUICE_TRY(const Tensor x, call.filled_operand(0, "x", 1));
  SLUICE_TRY(const Tensor y, call.result(0, "y", x.dims));
  const size_t columns = x.dim(x.rank() - 1);
  softmax(x.elements() / columns, columns, x.data, logarithm, y.data);
  return {};
}

base::Status call_softmax_gradient(const Call& call) {
  SLUICE_OK(call.takes({{2, 1}}));
  SLUICE_TRY(const bool logarithm, call.flag("logarithm"));
  SLUICE_TRY(const Tensor grad_y, call.filled_operand(0, "grad_y", 1));
  SLUICE_TRY(const Tensor y, call.operand(1, "y", grad_y.dims));
  SLUICE_TRY(const Tensor grad_x, call.result(0, "grad_x", grad_y.dims));
  const size_t columns = y.dim(y.rank() - 1);
  softmax_gradient(y.elements() / columns, columns, grad_y.data, y.data, logarithm, grad_x.data);
  return {};
}

}  // namespace sluice::kernels
