// Factorizations of batches of matrices [batch, rows, columns], f32, f64 or complex, as loops of StableHLO
// that every compiler takes: what the rows of linear_algebra.cc are made of.
//
// Pivots and signs are LAPACK's, so that values agree with LibTorch's.
#pragma once

#include "sluice/ops/common.h"

namespace sluice::ops {

// All dimensions but the last `inner` ones, and x with them as one.
Dims batch_dims(Value x, int64_t inner = 2);
Value collapse_batch(Builder& b, Value x, int64_t inner = 2);
// [batch, …] with these batch dimensions again.
Value restore_batch(Builder& b, Value x, const Dims& batch);

// Products that are added while it lives are as exact as the element type; a TPU rounds f32 to bf16 else.
class ExactProducts {
 public:
  explicit ExactProducts(Builder& b) : b_(b), before_(b.precision()) {
    b.set_precision(stablehlo::Precision::kHighest);
  }
  ~ExactProducts() { b_.set_precision(before_); }
  ExactProducts(const ExactProducts&) = delete;
  ExactProducts& operator=(const ExactProducts&) = delete;

 private:
  Builder& b_;
  stablehlo::Precision before_;
};

// The numbers of rows (or columns), s32 of x's dims, compared with the numbers of the other kind or with k.
Value row_numbers(Builder& b, Value x);
Value column_numbers(Builder& b, Value x);
Value compare_with(Builder& b, Value numbers, Value k, Compare direction);
// x where a predicate holds (of x's dims, or broadcast to them), 0 elsewhere.
Value where(Builder& b, Value predicate, Value x);
// Column k or row k, with the dimension of size 1 kept.
Value column(Builder& b, Value x, Value k);
Value row(Builder& b, Value x, Value k);
// x with zeros below or above its diagonal; 1s on it if `unit`.
Value upper_triangle(Builder& b, Value x);
Value lower_triangle(Builder& b, Value x, bool unit = false);
Value transposed(Builder& b, Value x);
// For complex numbers: the conjugate, the conjugate transpose and the real part. Real numbers are their own.
Value conjugated(Builder& b, Value x);
Value adjoint(Builder& b, Value x);
Value real_part(Builder& b, Value x);
Value identity(Builder& b, DType dtype, int64_t batch, int64_t rows, int64_t columns);
// The diagonal, [batch, min(rows, columns)].
Value diagonal(Builder& b, Value x);
Value product(Builder& b, Value left, Value right);
// The rows or columns of x in the order of s32 [batch, count].
Value rows_in_order(Builder& b, Value x, Value order);
Value columns_in_order(Builder& b, Value x, Value order);

// A = P L U with L and U in one matrix; pivots (s32 [batch, k], from 1) are the rows that row k was
// interchanged with; info (s32 [batch]) is 0 or the number of the first pivot that is zero.
struct LuFactors {
  Value lu, pivots, info;
};
LuFactors lu_factor(Builder& b, Value a);
// The order (s32 [batch, rows]) that the interchanges bring 0, 1 … into, or the one that undoes them.
Value row_order(Builder& b, Value pivots, int64_t rows, bool undo);
// X with A X = x, or Aᵀ X = x if `transpose` (not Aᴴ, for complex numbers either).
Value lu_solve(Builder& b, Value lu, Value pivots, Value x, bool transpose);

// Householder's QR: R on and above the diagonal of `a`, below it the reflectors' vectors, whose first element
// is 1; reflector k is I - tau[k] v vᴴ, and R = … Hᴴ₁ Hᴴ₀ A, so that Q = H₀ H₁ ….
struct QrFactors {
  Value a, tau;
};
QrFactors qr_factor(Builder& b, Value a);
// Q x, or Qᴴ x if `adjoint`.
Value apply_reflectors(Builder& b, const QrFactors& factors, Value x, bool adjoint);
// Q's first `columns` columns.
Value make_q(Builder& b, const QrFactors& factors, int64_t columns);

// The eigenvalues of a symmetric or Hermitian matrix, ascending and real, and its eigenvectors (in columns).
struct Eigen {
  Value values, vectors;
};
Eigen eigen_of_hermitian(Builder& b, Value a);
// a = U diag(S) Vᴴ with S descending and real. U and V are square if `full`, else have min(rows, columns)
// columns.
struct SingularValues {
  Value u, s, v;
};
SingularValues singular_values(Builder& b, Value a, bool full);

}  // namespace sluice::ops
