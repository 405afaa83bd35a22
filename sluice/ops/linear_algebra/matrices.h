// Factorizations of batches of matrices [batch, rows, columns], f32, f64 or complex, as loops of StableHLO
// that every compiler supports. The rows of linear_algebra.cc are composed of them.
//
// Pivots and signs are LAPACK's, so that values agree with LibTorch's.
#pragma once

#include "sluice/ops/common.h"

namespace sluice::ops {

// The type of the number of a row, a column or a round.
inline const Type kNumber{DType::kS32, {}};

// Returns all dimensions except the last `inner` ones, and x with these dimensions merged into one.
Dims batch_dims(Value x, int64_t inner = 2);
Value collapse_batch(Builder& b, Value x, int64_t inner = 2);
// Restores these batch dimensions of [batch, …].
Value restore_batch(Builder& b, Value x, const Dims& batch);

// A scope in which products are as exact as the element type; otherwise a TPU rounds f32 to bf16.
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

// Return the numbers of rows or columns, s32 with x's dims, or compare them with the other numbers or with k.
Value row_numbers(Builder& b, Value x);
Value column_numbers(Builder& b, Value x);
Value compare_with(Builder& b, Value numbers, Value k, Compare direction);
// Returns x where a predicate holds (with x's dims, or broadcast to them), 0 elsewhere.
Value where(Builder& b, Value predicate, Value x);
// Return column k or row k, and keep its dimension of size 1.
Value column(Builder& b, Value x, Value k);
Value row(Builder& b, Value x, Value k);
// Return x with zeros below or above its diagonal; with 1s on the diagonal if `unit`.
Value upper_triangle(Builder& b, Value x);
Value lower_triangle(Builder& b, Value x, bool unit = false);
Value transposed(Builder& b, Value x);
// For complex numbers: the conjugate, the conjugate transpose and the real part. A real number is its own
// conjugate.
Value conjugated(Builder& b, Value x);
Value adjoint(Builder& b, Value x);
Value real_part(Builder& b, Value x);
Value identity(Builder& b, DType dtype, int64_t batch, int64_t rows, int64_t columns);
// Returns the diagonal, [batch, min(rows, columns)].
Value diagonal(Builder& b, Value x);
Value product(Builder& b, Value left, Value right);
// Return the rows or columns of x in the order of s32 [batch, count].
Value rows_in_order(Builder& b, Value x, Value order);
Value columns_in_order(Builder& b, Value x, Value order);

// A = P L U with L and U in one matrix; pivots (s32 [batch, k], from 1) are the rows with which row k was
// interchanged; info (s32 [batch]) is 0 or the number of the first pivot that is zero.
struct LuFactors {
  Value lu, pivots, info;
};
LuFactors lu_factor(Builder& b, Value a);
// Returns the order (s32 [batch, rows]) into which the interchanges bring 0, 1 …, or the order that undoes
// them.
Value row_order(Builder& b, Value pivots, int64_t rows, bool undo);
// Returns X with A X = x, or Aᵀ X = x if `transpose` (not Aᴴ, even for complex numbers).
Value lu_solve(Builder& b, Value lu, Value pivots, Value x, bool transpose);

// Householder's QR: R is on and above the diagonal of `a`. Below it are the reflectors' vectors, whose first
// element is 1. Reflector k is I - tau[k] v vᴴ, and R = … Hᴴ₁ Hᴴ₀ A, so that Q = H₀ H₁ ….
struct QrFactors {
  Value a, tau;
};
QrFactors qr_factor(Builder& b, Value a);
// Returns Q x, or Qᴴ x if `adjoint`.
Value apply_reflectors(Builder& b, const QrFactors& factors, Value x, bool adjoint);
// Returns Q's first `columns` columns.
Value make_q(Builder& b, const QrFactors& factors, int64_t columns);

// The eigenvalues of a symmetric or Hermitian matrix, ascending and real, and its eigenvectors (as columns).
struct Eigen {
  Value values, vectors;
};
Eigen eigen_of_hermitian(Builder& b, Value a);
// a = U diag(S) Vᴴ with S descending and real. U and V are square if `full`; otherwise they have min(rows,
// columns) columns.
struct SingularValues {
  Value u, s, v;
};
SingularValues singular_values(Builder& b, Value a, bool full);

}  // namespace sluice::ops
