// Operations of linear algebra that LibTorch composes of others for its own devices, through tables that have
// no place for XLA. Their gradients take them apart again, so the parts must be LibTorch's: A's strides
// decide whether A or Aᵀ was factored, and a row does not see the strides.
#include <ATen/ops/_linalg_check_errors.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/linalg_lu_factor_ex.h>
#include <ATen/ops/linalg_lu_solve.h>
#include <ATen/ops/linalg_pinv_native.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <torch/library.h>

#include <limits>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/device/program/record.h"

namespace sluice::device {
namespace {

using at::Tensor;

void check_square(const char* op, const Tensor& a) {
  if (a.dim() >= 2 && a.size(-1) == a.size(-2)) return;
  throw_error(Code::kInvalidArgument,
              base::str(op, ": expected square matrices for 'A', found a tensor of shape ", a.sizes()));
}

bool factors_transpose(const Tensor& a) { return a.is_contiguous() && !a.is_complex(); }

// Returns whether b is a batch of vectors: [..., n], with matrices a of [..., n, n].
bool is_vectors(const Tensor& a, const Tensor& b) {
  return b.dim() == 1 || (a.dim() - 1 == b.dim() && b.sizes().equals(a.sizes().slice(0, a.dim() - 1)));
}

std::tuple<Tensor, Tensor, Tensor, Tensor> solve(const Tensor& a, const Tensor& b, bool left,
                                                 bool check_errors) {
  check_square("aten::_linalg_solve_ex", a);
  const bool vectors = is_vectors(a, b);
  if (vectors && !left)
    throw_error(Code::kInvalidArgument,
                "aten::_linalg_solve_ex: left=False needs matrices for 'B', found vectors");
  auto [lu, pivots, info] = at::linalg_lu_factor_ex(a);
  if (check_errors) at::_linalg_check_errors(info, "torch.linalg.solve_ex", a.dim() == 2);
  const Tensor x = at::linalg_lu_solve(lu, pivots, vectors ? b.unsqueeze(-1) : b, left);
  return {vectors ? x.squeeze(-1) : x, lu, pivots, info};
}

// Returns the determinant of the interchanges: 1 or -1.
Tensor sign_of(const Tensor& pivots) {
  const Tensor places = at::arange(1, pivots.size(-1) + 1, pivots.options());
  return at::remainder(places.ne(pivots).sum(-1), 2).mul(-2).add(1);
}

std::tuple<Tensor, Tensor, Tensor> determinant(const Tensor& a) {
  check_square("aten::_linalg_det", a);
  auto [lu, pivots, info] = at::linalg_lu_factor_ex(factors_transpose(a) ? a.mT() : a);
  return {lu.diagonal(0, -2, -1).prod(-1).mul(sign_of(pivots)), lu, pivots};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> log_determinant(const Tensor& a) {
  check_square("aten::_linalg_slogdet", a);
  auto [lu, pivots, info] = at::linalg_lu_factor_ex(factors_transpose(a) ? a.mT() : a);
  const Tensor diagonal = lu.diagonal(0, -2, -1);
  return {diagonal.sgn().prod(-1).mul(sign_of(pivots)), diagonal.abs().log().sum(-1), lu, pivots};
}

Tensor cholesky_factor(const Tensor& a, bool upper) {
  auto [factor, info] = at::linalg_cholesky_ex(a, upper);
  at::_linalg_check_errors(info, "cholesky", a.dim() == 2);
  return factor;
}

Tensor pseudo_inverse(const Tensor& a, const std::optional<Tensor>& atol, const std::optional<Tensor>& rtol,
                      bool hermitian) {
  return at::native::linalg_pinv(a, atol, rtol, hermitian);
}

void check_least_squares(const Tensor& a, const Tensor& b, std::string_view driver) {
  if (a.dim() < 2 || (b.dim() != a.dim() && b.dim() != a.dim() - 1) ||
      a.size(-2) != b.size(b.dim() == a.dim() ? -2 : -1)) {
    throw_error(
        Code::kInvalidArgument,
        base::str(
            "aten::linalg_lstsq: expected matrices and a right side with the same number of rows, found ",
            a.sizes(), " and ", b.sizes()));
  }
  if (driver != "gels" && driver != "gelsy" && driver != "gelsd" && driver != "gelss") {
    throw_error(
        Code::kInvalidArgument,
        base::str("aten::linalg_lstsq: expected a driver of gels, gelsy, gelsd or gelss, found ", driver));
  }
}

// Solves by singular values for every driver. The driver decides what is returned with the solution, and
// `gels` assumes that the matrix has full rank.
std::tuple<Tensor, Tensor, Tensor, Tensor> least_squares(const Tensor& a, const Tensor& b,
                                                         std::optional<double> rcond,
                                                         std::optional<std::string_view> named) {
  const std::string_view driver = named.value_or("gelsy");
  check_least_squares(a, b, driver);
  const bool full_rank = driver == "gels", vectors = b.dim() == a.dim() - 1;
  const int64_t rows = a.size(-2), columns = a.size(-1);
  const double epsilon = c10::toRealValueType(a.scalar_type()) == at::kDouble
                             ? std::numeric_limits<double>::epsilon()
                             : static_cast<double>(std::numeric_limits<float>::epsilon());
  const Tensor right = vectors ? b.unsqueeze(-1) : b;
  const auto [u, s, vh] = at::linalg_svd(a, /*full_matrices=*/false);
  const double limit = rcond.value_or(epsilon * static_cast<double>(std::max(rows, columns)));
  const Tensor largest = s.narrow(-1, 0, std::min<int64_t>(s.size(-1), 1));
  const Tensor kept = full_rank ? at::ones_like(s, s.options().dtype(at::kBool)) : s.gt(largest.mul(limit));
  const Tensor inverse = at::where(kept, s.reciprocal(), at::zeros({}, s.options()));
  const Tensor x = vh.mH().matmul(u.mH().matmul(right).mul(inverse.unsqueeze(-1)));

  const Tensor none = at::empty({0}, a.options().dtype(c10::toRealValueType(a.scalar_type())));
  Tensor rank = full_rank ? at::empty({0}, a.options().dtype(at::kLong)) : kept.sum(-1);
  const bool squares =
      driver != "gelsy" && rows > columns && (full_rank || rank.eq(columns).all().item<bool>());
  const Tensor residuals = squares ? a.matmul(x).sub(right).abs().square().sum(-2) : none;
  const bool values = driver == "gelsd" || driver == "gelss";
  return {vectors ? x.squeeze(-1) : x, residuals, rank, values ? s : none};
}

void put(const Tensor& out, const Tensor& value) {
  out.resize_(value.sizes());
  out.copy_(value);
}

std::tuple<Tensor&, Tensor&, Tensor&, Tensor&> solve_out(const Tensor& a, const Tensor& b, bool left,
                                                         bool check_errors, Tensor& x, Tensor& lu,
                                                         Tensor& pivots, Tensor& info) {
  const auto made = solve(a, b, left, check_errors);
  put(x, std::get<0>(made));
  put(lu, std::get<1>(made));
  put(pivots, std::get<2>(made));
  put(info, std::get<3>(made));
  return {x, lu, pivots, info};
}

std::tuple<Tensor&, Tensor&, Tensor&> determinant_out(const Tensor& a, Tensor& result, Tensor& lu,
                                                      Tensor& pivots) {
  const auto made = determinant(a);
  put(result, std::get<0>(made));
  put(lu, std::get<1>(made));
  put(pivots, std::get<2>(made));
  return {result, lu, pivots};
}

std::tuple<Tensor&, Tensor&, Tensor&, Tensor&> log_determinant_out(const Tensor& a, Tensor& sign,
                                                                   Tensor& logabsdet, Tensor& lu,
                                                                   Tensor& pivots) {
  const auto made = log_determinant(a);
  put(sign, std::get<0>(made));
  put(logabsdet, std::get<1>(made));
  put(lu, std::get<2>(made));
  put(pivots, std::get<3>(made));
  return {sign, logabsdet, lu, pivots};
}

Tensor& cholesky_out(const Tensor& a, bool upper, Tensor& out) {
  put(out, cholesky_factor(a, upper));
  return out;
}

Tensor& pseudo_inverse_out(const Tensor& a, const std::optional<Tensor>& atol,
                           const std::optional<Tensor>& rtol, bool hermitian, Tensor& out) {
  put(out, pseudo_inverse(a, atol, rtol, hermitian));
  return out;
}

std::tuple<Tensor&, Tensor&, Tensor&, Tensor&> least_squares_out(const Tensor& a, const Tensor& b,
                                                                 std::optional<double> rcond,
                                                                 std::optional<std::string_view> driver,
                                                                 Tensor& x, Tensor& residuals, Tensor& rank,
                                                                 Tensor& values) {
  const auto made = least_squares(a, b, rcond, driver);
  put(x, std::get<0>(made));
  put(residuals, std::get<1>(made));
  put(rank, std::get<2>(made));
  put(values, std::get<3>(made));
  return {x, residuals, rank, values};
}

}  // namespace

void register_linear_algebra() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::XLA, __FILE__, __LINE__);
  library->impl("_linalg_solve_ex", TORCH_FN(solve));
  library->impl("_linalg_solve_ex.result", TORCH_FN(solve_out));
  library->impl("_linalg_det", TORCH_FN(determinant));
  library->impl("_linalg_det.result", TORCH_FN(determinant_out));
  library->impl("_linalg_slogdet", TORCH_FN(log_determinant));
  library->impl("_linalg_slogdet.sign", TORCH_FN(log_determinant_out));
  library->impl("cholesky", TORCH_FN(cholesky_factor));
  library->impl("cholesky.out", TORCH_FN(cholesky_out));
  library->impl("linalg_pinv.atol_rtol_tensor", TORCH_FN(pseudo_inverse));
  library->impl("linalg_pinv.atol_rtol_tensor_out", TORCH_FN(pseudo_inverse_out));
  library->impl("linalg_lstsq", TORCH_FN(least_squares));
  library->impl("linalg_lstsq.out", TORCH_FN(least_squares_out));
}

}  // namespace sluice::device
