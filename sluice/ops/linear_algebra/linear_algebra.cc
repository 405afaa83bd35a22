// Factorizations, triangular and other linear systems, eigenvalues, singular values.
//
// A program cannot throw: rows whose calls request check_errors leave them to the CPU, and LibTorch's
// compositions of the rows (linalg.cholesky, linalg.inv, linalg.solve) read `info` on the host.
#include <algorithm>
#include <array>
#include <cmath>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/ops/indexing/indexing.h"
#include "sluice/ops/linear_algebra/matrices.h"

namespace sluice::ops {
namespace {

Value matrices(Emit& e, std::string_view name) {
  Value x = e.tensor(name);
  e.check(x.rank() >= 2, base::str("expected at least 2 dimensions for '", name, "', found ", x.rank(), " (",
                                   in_words(x), ")"));
  const DType real = stablehlo::real_dtype(x.dtype());
  e.check(real == DType::kF32 || real == DType::kF64,
          base::str("expected f32, f64, c64 or c128 for '", name, "', found ", in_words(x),
                    "; convert it with .to(torch::kFloat)"));
  return x;
}

Value square_matrices(Emit& e, std::string_view name) {
  Value x = matrices(e, name);
  e.check(x.dim(x.rank() - 1) == x.dim(x.rank() - 2),
          base::str("expected square matrices for '", name, "', found ", in_words(x)));
  return x;
}

void leave_checks_to_host(Emit& e) {
  if (e.boolean("check_errors"))
    throw_error(Code::kUnimplemented,
                base::str(e.op(), ": a program cannot raise what check_errors asks for"));
}

int64_t rows_of(Value x) { return x.dim(x.rank() - 2); }
int64_t columns_of(Value x) { return x.dim(x.rank() - 1); }

// Returns the dims [batch…, last…].
Dims with(Dims batch, std::initializer_list<int64_t> last) {
  batch.insert(batch.end(), last);
  return batch;
}

Value nothing(Emit& e, DType dtype) { return zeros(e.b, Type{dtype, {0}}); }

// Two matrices with the batch dimensions that NumPy's rule gives them, merged into one, and these dimensions.
struct Pair {
  Value a, x;
  Dims batch;
};
Pair pair_of(Emit& e, Value a, Value x) {
  e.check(a.dtype() == x.dtype(), base::str("expected matrices of one element type, found ", in_words(a),
                                            " and ", in_words(x), "; convert one of them with .to()"));
  const Dims batch = broadcast_dims(batch_dims(a), batch_dims(x));
  auto wide = [&](Value value) {
    return collapse_batch(e.b, e.b.broadcast(value, with(batch, {rows_of(value), columns_of(value)})));
  };
  return {wide(a), wide(x), batch};
}

void check_fits(Emit& e, Value a, Value x, bool left) {
  e.check((left ? rows_of(x) : columns_of(x)) == rows_of(a),
          base::str("expected a right side with the matrices' number of ", left ? "rows" : "columns", " (",
                    rows_of(a), "), found ", in_words(x)));
}

// The diagonal of a Hermitian matrix is real: as LAPACK does, this reads only its real parts.
Value with_real_diagonal(Builder& b, Value x) {
  if (!stablehlo::is_complex(x.dtype())) return x;
  Value on = b.compare(row_numbers(b, x), column_numbers(b, x), Compare::kEq);
  return b.select(on, to(b, b.real(x), x.dtype()), x);
}

// ---- Cholesky ----

// Returns the number of the first leading minor that is not positive, [batch]; a's lower triangle is read.
Value first_failure(Builder& b, Value a) {
  const int64_t batch = a.dim(0);
  const Values init = {a, b.splat(0, Type{DType::kS32, {batch}})};
  return repeat(b, a.dim(1), init, [&](Builder& b, Value k, const Values& state) -> Values {
    Value rest = state[0], info = state[1];
    Value below = column(b, rest, k);
    Value head = real_part(b, row(b, below, k));
    Value factor = b.divide(below, to(b, b.broadcast(b.sqrt(head), below.dims()), below.dtype()));
    Value outer = b.multiply(b.broadcast(factor, rest.dims()), b.broadcast(adjoint(b, factor), rest.dims()));
    Value good = b.reshape(b.compare(head, number_like(b, 0, head), Compare::kGt), {batch});
    Value failed = b.and_(is_equal(b, info, 0), b.not_(good));
    Value number = b.broadcast(b.add(k, b.splat(1, k.type())), info.dims());
    return {b.subtract(rest, outer), b.select(failed, number, info)};
  })[1];
}

Values cholesky_ex(Emit& e) {
  Builder& b = e.b;
  Value a = square_matrices(e, "self");
  leave_checks_to_host(e);
  const bool upper = e.boolean("upper");
  const Dims batch = batch_dims(a);
  if (a.type().numel() == 0) return {a, zeros(b, Type{DType::kS32, batch})};
  Value flat = with_real_diagonal(b, collapse_batch(b, a));
  if (upper) flat = adjoint(b, flat);
  Value factor = lower_triangle(b, b.cholesky(flat, true));
  Value bad = b.reduce_or(is_nan(b, factor), {0, 1, 2});
  Value none = zeros(b, Type{DType::kS32, {flat.dim(0)}});
  Value info = b.if_(
      bad, [&](Builder& b, std::span<const Value>) { return Values{first_failure(b, flat)}; },
      [&](Builder&, std::span<const Value>) { return Values{none}; })[0];
  if (upper) factor = adjoint(b, factor);
  return {restore_batch(b, factor, batch), restore_batch(b, info, batch)};
}

// Solves A X = x with A = L Lᴴ (or Uᴴ U).
Value solve_by_factor(Builder& b, Value factor, Value x, bool upper) {
  Value other = conjugated(b, factor);
  Value first = b.triangular_solve(upper ? other : factor, x, {.lower = !upper, .transpose = upper});
  return b.triangular_solve(upper ? factor : other, first, {.lower = !upper, .transpose = !upper});
}

Values cholesky_solve_helper(Emit& e) {
  Value factor = square_matrices(e, "A"), x = matrices(e, "self");
  check_fits(e, factor, x, true);
  if (x.type().numel() == 0) return {x};
  const Pair pair = pair_of(e, factor, x);
  return {restore_batch(e.b, solve_by_factor(e.b, pair.a, pair.x, e.boolean("upper")), pair.batch)};
}

Values cholesky_inverse(Emit& e) {
  Builder& b = e.b;
  Value factor = square_matrices(e, "self");
  if (factor.type().numel() == 0) return {factor};
  Value flat = collapse_batch(b, factor);
  Value eye = identity(b, flat.dtype(), flat.dim(0), flat.dim(1), flat.dim(1));
  return {restore_batch(b, solve_by_factor(b, flat, eye, e.boolean("upper")), batch_dims(factor))};
}

// ---- triangular systems ----

Values solve_triangular(Emit& e) {
  Value a = square_matrices(e, "self"), x = matrices(e, "B");
  const bool left = e.boolean("left");
  check_fits(e, a, x, left);
  const Pair pair = pair_of(e, a, x);
  Value result = pair.x;
  if (result.type().numel() > 0)
    result = e.b.triangular_solve(
        pair.a, pair.x, {.left = left, .lower = !e.boolean("upper"), .unit = e.boolean("unitriangular")});
  return {restore_batch(e.b, result, pair.batch)};
}

Values triangular_solve(Emit& e) {
  Value a = square_matrices(e, "A"), x = matrices(e, "self");
  check_fits(e, a, x, true);
  const Pair pair = pair_of(e, a, x);
  Value result = pair.x;
  if (result.type().numel() > 0)
    result = e.b.triangular_solve(pair.a, pair.x,
                                  {.lower = !e.boolean("upper"),
                                   .unit = e.boolean("unitriangular"),
                                   .transpose = e.boolean("transpose")});
  return {restore_batch(e.b, result, pair.batch), restore_batch(e.b, pair.a, pair.batch)};
}

// ---- LU ----

void check_pivot(Emit& e) {
  if (!e.boolean("pivot"))
    throw_error(Code::kUnimplemented, base::str(e.op(), ": LU without pivoting is not stable"));
}

Values lu_factor_ex(Emit& e) {
  Builder& b = e.b;
  Value a = matrices(e, "A");
  leave_checks_to_host(e);
  check_pivot(e);
  const Dims batch = batch_dims(a);
  const LuFactors factors = lu_factor(b, collapse_batch(b, a));
  return {restore_batch(b, factors.lu, batch), restore_batch(b, factors.pivots, batch),
          restore_batch(b, factors.info, batch)};
}

// Returns P of A = P L U, from the interchanges.
Value permutation_matrix(Builder& b, Value pivots, int64_t rows, DType dtype) {
  Value order = row_order(b, pivots, rows, false);
  const Dims dims = {pivots.dim(0), rows, rows};
  Value place = b.broadcast_in_dim(order, dims, {0, 2});
  return to(b, b.compare(place, positions(b, dims, 1), Compare::kEq), dtype);
}

// Returns L and U of the matrix that holds both.
Values unpacked(Builder& b, Value lu) {
  const int64_t batch = lu.dim(0), rows = lu.dim(1), columns = lu.dim(2), count = std::min(rows, columns);
  Value left = b.slice(lu, {0, 0, 0}, {batch, rows, count});
  Value right = b.slice(lu, {0, 0, 0}, {batch, count, columns});
  return {lower_triangle(b, left, true), upper_triangle(b, right)};
}

Values lu_unpack(Emit& e) {
  Builder& b = e.b;
  Value lu = e.tensor("LU_data"), pivots = e.tensor("LU_pivots");
  e.check(lu.rank() >= 2, base::str("expected at least 2 dimensions for 'LU_data', found ", in_words(lu)));
  e.check(pivots.dtype() == DType::kS32,
          base::str("expected pivots of i32, as linalg_lu_factor returns them, ", "for 'LU_pivots', found ",
                    in_words(pivots)));
  const Dims batch = batch_dims(lu);
  e.check(pivots.dims() == with(batch, {std::min(rows_of(lu), columns_of(lu))}),
          base::str("expected one pivot a diagonal element for 'LU_pivots', found ", in_words(pivots),
                    " for ", in_words(lu)));
  Values results(3, nothing(e, lu.dtype()));
  if (e.boolean("unpack_pivots"))
    results[0] =
        restore_batch(b, permutation_matrix(b, collapse_batch(b, pivots, 1), rows_of(lu), lu.dtype()), batch);
  if (!e.boolean("unpack_data")) return results;
  const Values parts = unpacked(b, collapse_batch(b, lu));
  return {results[0], restore_batch(b, parts[0], batch), restore_batch(b, parts[1], batch)};
}

Values lu(Emit& e) {
  Builder& b = e.b;
  Value a = matrices(e, "A");
  check_pivot(e);
  const Dims batch = batch_dims(a);
  const LuFactors factors = lu_factor(b, collapse_batch(b, a));
  const Values parts = unpacked(b, factors.lu);
  Value order = permutation_matrix(b, factors.pivots, rows_of(a), a.dtype());
  return {restore_batch(b, order, batch), restore_batch(b, parts[0], batch),
          restore_batch(b, parts[1], batch)};
}

Values solve_by_lu(Emit& e) {
  Builder& b = e.b;
  Value lu = square_matrices(e, "LU"), x = matrices(e, "B"), pivots = e.tensor("pivots");
  const bool left = e.boolean("left");
  check_fits(e, lu, x, left);
  e.check(pivots.dtype() == DType::kS32 && pivots.dims() == with(batch_dims(lu), {rows_of(lu)}),
          base::str("expected i32 pivots, one a row of 'LU', for 'pivots', found ", in_words(pivots), " for ",
                    in_words(lu)));
  const Pair pair = pair_of(e, lu, x);
  if (pair.x.type().numel() == 0) return {restore_batch(b, pair.x, pair.batch)};
  Value wide = collapse_batch(b, b.broadcast(pivots, with(pair.batch, {rows_of(lu)})), 1);
  // X A = B is Aᵀ Xᵀ = Bᵀ, and X Aᴴ = B is Ā Xᵀ = Bᵀ.
  const bool adjoint = e.boolean("adjoint");
  Value right = left ? pair.x : transposed(b, pair.x);
  Value result = lu_solve(b, adjoint ? conjugated(b, pair.a) : pair.a, wide, right, adjoint == left);
  return {restore_batch(b, left ? result : transposed(b, result), pair.batch)};
}

Values inv_ex(Emit& e) {
  Builder& b = e.b;
  Value a = square_matrices(e, "A");
  leave_checks_to_host(e);
  const Dims batch = batch_dims(a);
  if (a.type().numel() == 0) return {a, zeros(b, Type{DType::kS32, batch})};
  Value flat = collapse_batch(b, a);
  const LuFactors factors = lu_factor(b, flat);
  Value eye = identity(b, flat.dtype(), flat.dim(0), flat.dim(1), flat.dim(1));
  Value inverse = lu_solve(b, factors.lu, factors.pivots, eye, false);
  return {restore_batch(b, inverse, batch), restore_batch(b, factors.info, batch)};
}

// ---- QR ----

Values geqrf(Emit& e) {
  Value a = matrices(e, "self");
  const Dims batch = batch_dims(a);
  const QrFactors factors = qr_factor(e.b, collapse_batch(e.b, a));
  return {restore_batch(e.b, factors.a, batch), restore_batch(e.b, factors.tau, batch)};
}

Values qr(Emit& e) {
  Builder& b = e.b;
  Value a = matrices(e, "A");
  const std::string_view mode = e.text("mode");
  e.check(mode == "reduced" || mode == "complete" || mode == "r",
          base::str("expected a mode of \"reduced\", \"complete\" or \"r\", found \"", mode, "\""));
  const Dims batch = batch_dims(a);
  const int64_t rows = rows_of(a), count = std::min(rows, columns_of(a));
  const QrFactors factors = qr_factor(b, collapse_batch(b, a));
  const int64_t kept = mode == "complete" ? rows : count;
  Value r = upper_triangle(b, b.slice_dim(factors.a, 1, 0, kept));
  Value q = nothing(e, a.dtype());
  if (mode != "r") q = restore_batch(b, make_q(b, factors, kept), batch);
  return {q, restore_batch(b, r, batch)};
}

QrFactors factors_of(Emit& e, std::string_view reflectors, std::string_view tau) {
  Value a = matrices(e, reflectors), t = e.tensor(tau);
  e.check(t.rank() == a.rank() - 1 && t.dtype() == a.dtype() && batch_dims(t, 1) == batch_dims(a) &&
              t.dim(t.rank() - 1) <= columns_of(a) && columns_of(a) <= rows_of(a),
          base::str("expected '", reflectors, "' with no more columns than rows, and for '", tau,
                    "' at most one number a column, found ", in_words(a), " and ", in_words(t)));
  return {collapse_batch(e.b, a), collapse_batch(e.b, t, 1)};
}

Values householder_product(Emit& e) {
  const QrFactors factors = factors_of(e, "input", "tau");
  return {restore_batch(e.b, make_q(e.b, factors, factors.a.dim(2)), batch_dims(e.tensor("input")))};
}

Values ormqr(Emit& e) {
  Builder& b = e.b;
  const QrFactors factors = factors_of(e, "self", "input2");
  Value c = matrices(e, "input3");
  const bool left = e.boolean("left"), transpose = e.boolean("transpose");
  e.check(batch_dims(c) == batch_dims(e.tensor("self")) &&
              (left ? rows_of(c) : columns_of(c)) == factors.a.dim(1),
          base::str("expected 'input3' to fit Q of ", in_words(e.tensor("self")), ", found ", in_words(c)));
  Value x = collapse_batch(b, c);
  // C Q is (Qᴴ Cᴴ)ᴴ.
  Value made = apply_reflectors(b, factors, left ? x : adjoint(b, x), transpose == left);
  return {restore_batch(b, left ? made : adjoint(b, made), batch_dims(c))};
}

// ---- eigenvalues and singular values ----

Values eigh(Emit& e) {
  Builder& b = e.b;
  Value a = square_matrices(e, "A");
  const std::string_view triangle = e.text("UPLO");
  e.check(triangle.size() == 1 && std::string_view("LlUu").find(triangle[0]) != std::string_view::npos,
          base::str("expected a UPLO of \"L\" or \"U\", found \"", triangle, "\""));
  const bool lower = triangle == "L" || triangle == "l", with_vectors = e.boolean("compute_v");
  const Dims batch = batch_dims(a);
  Value vectors = nothing(e, a.dtype());
  if (a.type().numel() == 0)
    return {zeros(b, Type{stablehlo::real_dtype(a.dtype()), with(batch, {rows_of(a)})}),
            with_vectors ? a : vectors};
  Value flat = with_real_diagonal(b, collapse_batch(b, a));
  Value read = b.compare(row_numbers(b, flat), column_numbers(b, flat), lower ? Compare::kGe : Compare::kLe);
  const Eigen found = eigen_of_hermitian(b, b.select(read, flat, adjoint(b, flat)));
  if (with_vectors) vectors = restore_batch(b, found.vectors, batch);
  return {restore_batch(b, found.values, batch), vectors};
}

// Returns U, S and V of an empty matrix.
SingularValues of_nothing(Builder& b, Value a, bool full) {
  const int64_t batch = a.dim(0), rows = a.dim(1), columns = a.dim(2), count = std::min(rows, columns);
  return {identity(b, a.dtype(), batch, rows, full ? rows : count),
          zeros(b, Type{stablehlo::real_dtype(a.dtype()), {batch, count}}),
          identity(b, a.dtype(), batch, columns, full ? columns : count)};
}

Values svd(Emit& e) {
  Builder& b = e.b;
  Value a = matrices(e, "A");
  e.check(!e.has("driver"), "the driver argument is for cuSOLVER: leave it out on this device");
  const bool full = e.boolean("full_matrices"), with_vectors = e.boolean("compute_uv");
  const Dims batch = batch_dims(a);
  Value flat = collapse_batch(b, a);
  const SingularValues found = flat.type().numel() == 0 ? of_nothing(b, flat, full && with_vectors)
                                                        : singular_values(b, flat, full && with_vectors);
  Value s = restore_batch(b, found.s, batch), none = nothing(e, a.dtype());
  if (!with_vectors) return {none, s, none};
  return {restore_batch(b, found.u, batch), s, restore_batch(b, adjoint(b, found.v), batch)};
}

// ---- the exponential ----

// Padé's approximant of degree 13 (Higham, "The scaling and squaring method for the matrix exponential
// revisited", 2005), for matrices whose 1-norm is at most kPadeNorm.
constexpr double kPadeNorm = 5.371920351148152;
constexpr std::array<double, 14> kPade = {64764752532480000.,
                                          32382376266240000.,
                                          7771770303897600.,
                                          1187353796428800.,
                                          129060195264000.,
                                          10559470521600.,
                                          670442572800.,
                                          33522128640.,
                                          1323241920.,
                                          40840800.,
                                          960960.,
                                          16380.,
                                          182.,
                                          1.};

Value pade(Builder& b, Value a) {
  Value one = identity(b, a.dtype(), a.dim(0), a.dim(1), a.dim(1));
  Value a2 = product(b, a, a), a4 = product(b, a2, a2), a6 = product(b, a4, a2);
  // Sums A², A⁴ and A⁶ times their kPade[i]; all coefficients are divided by kPade[0] to stay in range.
  auto sum = [&](std::array<size_t, 3> powers) {
    auto times = [&](size_t i, Value x) { return b.multiply(number_like(b, kPade[i] / kPade[0], x), x); };
    return b.add(times(powers[0], a2), b.add(times(powers[1], a4), times(powers[2], a6)));
  };
  auto plus_one = [&](Value x, size_t i) {
    return b.add(x, b.multiply(number_like(b, kPade[i] / kPade[0], one), one));
  };
  Value u = product(b, a, plus_one(b.add(product(b, a6, sum({9, 11, 13})), sum({3, 5, 7})), 1));
  Value v = plus_one(b.add(product(b, a6, sum({8, 10, 12})), sum({2, 4, 6})), 0);
  const LuFactors factors = lu_factor(b, b.subtract(v, u));
  return lu_solve(b, factors.lu, factors.pivots, b.add(v, u), false);
}

// Computes exp(A) = exp(A / 2^s)^(2^s), with each matrix's own s.
Value exponential(Builder& b, Value a) {
  Value norm = b.reduce_max(b.reduce_sum(b.abs(a), {1}), {1});
  Value ratio = b.divide(norm, number_like(b, kPadeNorm, norm));
  Value halvings =
      b.ceil(b.divide(b.log(b.maximum(ratio, number_like(b, 1, ratio))), number_like(b, std::log(2), ratio)));
  // Halving does not help if the norm is not finite.
  halvings = b.select(b.is_finite(halvings), halvings, number_like(b, 0, halvings));
  Value factor = b.power(number_like(b, 0.5, halvings), halvings);
  Value made = pade(b, b.multiply(a, to(b, b.broadcast_in_dim(factor, a.dims(), {0}), a.dtype())));
  Value count = b.convert(halvings, DType::kS32), largest = b.reduce_max(count, {0});
  const Type number{DType::kS32, {}};
  return b.while_(
      Values{b.splat(0, number), made},
      [&](Builder& b, std::span<const Value> in) { return Values{b.compare(in[0], largest, Compare::kLt)}; },
      [&](Builder& b, std::span<const Value> in) {
        Value more = b.compare(b.broadcast(in[0], count.dims()), count, Compare::kLt);
        Value squared = product(b, in[1], in[1]);
        return Values{b.add(in[0], b.splat(1, number)),
                      b.select(b.broadcast_in_dim(more, squared.dims(), {0}), squared, in[1])};
      })[1];
}

Values matrix_exp(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  e.check(x.rank() >= 2 && rows_of(x) == columns_of(x) &&
              (stablehlo::is_float(x.dtype()) || stablehlo::is_complex(x.dtype())),
          base::str("expected square matrices of floats or complex numbers, found ", in_words(x)));
  if (x.type().numel() == 0) return {x};
  Value flat = collapse_batch(b, to(b, x, compute_type(x.dtype())));
  return {to(b, restore_batch(b, exponential(b, flat), batch_dims(x)), x.dtype())};
}

constexpr Row kLinearAlgebraRows[] = {
    {.name = "aten::linalg_cholesky_ex", .emit = cholesky_ex},
    {.name = "aten::_cholesky_solve_helper", .emit = cholesky_solve_helper},
    {.name = "aten::cholesky_inverse", .emit = cholesky_inverse},
    {.name = "aten::linalg_solve_triangular", .emit = solve_triangular},
    {.name = "aten::triangular_solve", .emit = triangular_solve},
    {.name = "aten::linalg_lu_factor_ex", .emit = lu_factor_ex},
    {.name = "aten::lu_unpack", .emit = lu_unpack},
    {.name = "aten::linalg_lu", .emit = lu},
    {.name = "aten::linalg_lu_solve", .emit = solve_by_lu},
    {.name = "aten::linalg_inv_ex", .emit = inv_ex},
    {.name = "aten::geqrf", .emit = geqrf},
    {.name = "aten::linalg_qr", .emit = qr},
    {.name = "aten::linalg_householder_product", .emit = householder_product},
    {.name = "aten::ormqr", .emit = ormqr},
    {.name = "aten::_linalg_eigh", .emit = eigh},
    {.name = "aten::_linalg_svd", .emit = svd},
    {.name = "aten::linalg_matrix_exp", .emit = matrix_exp},
};

}  // namespace

std::span<const Row> linear_algebra_rows() { return kLinearAlgebraRows; }

}  // namespace sluice::ops
