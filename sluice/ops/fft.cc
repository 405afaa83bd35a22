// Fourier transforms over any dimensions, one after the other. StableHLO's inverse divides by the length,
// LibTorch's by a factor that `normalization` chooses.
#include <cmath>

#include "sluice/base/text/join.h"
#include "sluice/ops/common.h"

namespace sluice::ops {
namespace {

using stablehlo::Fft;

// Returns the transform along one dimension.
Value along(Builder& b, Value x, int64_t dim, Fft kind, int64_t length) {
  Dims order;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (d != dim) order.push_back(d);
  order.push_back(dim);
  Value made = b.fft(b.transpose(x, order), kind, length);
  Dims back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return b.transpose(made, back);
}

// Returns the dims in the order of the call, which matters: the last one is halved.
Dims transformed_dims(Emit& e, Value x) {
  Dims dims;
  for (int64_t dim : e.ints("dim")) dims.push_back(wrap_dim(dim, x.rank()));
  return dims;
}

// Multiplies x by the factor of `normalization` (0: 1, 1: 1 / sqrt(n), 2: 1 / n for n numbers), and by the
// number that the inverse transforms have divided by.
Value normalized(Emit& e, Value x, double n, double divided) {
  const int64_t mode = e.integer("normalization");
  e.check(mode >= 0 && mode <= 2, base::str("expected a normalization of 0, 1 or 2, found ", mode));
  const double factor = divided * (mode == 0 ? 1 : mode == 1 ? 1 / std::sqrt(n) : 1 / n);
  return factor == 1 ? x : e.b.multiply(x, number_like(e.b, factor, x));
}

void check_complex(Emit& e, Value x) {
  e.check(stablehlo::is_complex(x.dtype()),
          base::str("expected complex numbers for 'self', found ", in_words(x)));
}

double count(Value x, const Dims& dims) {
  double n = 1;
  for (int64_t dim : dims) n *= static_cast<double>(x.dim(dim));
  return n;
}

Value complex_transform(Builder& b, Value x, const Dims& dims, bool forward) {
  for (int64_t dim : dims) x = along(b, x, dim, forward ? Fft::kForward : Fft::kInverse, x.dim(dim));
  return x;
}

Values c2c(Emit& e) {
  Value x = e.tensor("self");
  check_complex(e, x);
  const Dims dims = transformed_dims(e, x);
  if (x.type().numel() == 0) return {x};
  const bool forward = e.boolean("forward");
  const double n = count(x, dims);
  return {normalized(e, complex_transform(e.b, x, dims, forward), n, forward ? 1 : n)};
}

Values r2c(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  e.check(x.dtype() == DType::kF32 || x.dtype() == DType::kF64,
          base::str("expected f32 or f64 for 'self', found ", in_words(x), "; convert it with .to()"));
  Dims dims = transformed_dims(e, x);
  e.check(!dims.empty(), "expected a dimension to transform");
  const double n = count(x, dims);
  const int64_t last = dims.back(), length = x.dim(last);
  if (!e.boolean("onesided")) {
    Value wide = to(b, x, stablehlo::complex_dtype(x.dtype()));
    return {normalized(e, x.type().numel() == 0 ? wide : complex_transform(b, wide, dims, true), n, 1)};
  }
  dims.pop_back();
  if (x.type().numel() == 0) {
    Dims half = x.dims();
    half[static_cast<size_t>(last)] = length / 2 + 1;
    return {zeros(b, Type{stablehlo::complex_dtype(x.dtype()), half})};
  }
  Value made = complex_transform(b, along(b, x, last, Fft::kRealForward, length), dims, true);
  return {normalized(e, made, n, 1)};
}

Values c2r(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  check_complex(e, x);
  Dims dims = transformed_dims(e, x);
  e.check(!dims.empty(), "expected a dimension to transform");
  const int64_t last = dims.back(), length = e.integer("last_dim_size"), half = length / 2 + 1;
  e.check(length >= 1 && x.dim(last) >= half,
          base::str("expected at least ", half, " elements along dimension ", last, " for a result of ",
                    length, ", found ", in_words(x)));
  dims.pop_back();
  Dims result = x.dims();
  result[static_cast<size_t>(last)] = length;
  if (x.type().numel() == 0) return {zeros(b, Type{stablehlo::real_dtype(x.dtype()), result})};
  const double n = count(x, dims) * static_cast<double>(length);
  Value inner = complex_transform(b, b.slice_dim(x, last, 0, half), dims, false);
  return {normalized(e, along(b, inner, last, Fft::kRealInverse, length), n, n)};
}

constexpr Row kFftRows[] = {
    {.name = "aten::_fft_c2c", .emit = c2c},
    {.name = "aten::_fft_c2r", .emit = c2r},
    {.name = "aten::_fft_r2c", .emit = r2c},
};

}  // namespace

std::span<const Row> fft_rows() { return kFftRows; }

}  // namespace sluice::ops
