// Complex numbers: their construction, and the list of rows of other families that take them.
#include "sluice/ops/row_types.h"

#include <algorithm>
#include <array>

#include "sluice/base/text/join.h"
#include "sluice/ops/common.h"

namespace sluice::ops {
namespace {

// Returns two real arguments of one element type, f32 or f64.
Values parts(Emit& e, std::string_view first, std::string_view second) {
  Value x = e.tensor(first), y = e.tensor(second);
  e.check((x.dtype() == DType::kF32 || x.dtype() == DType::kF64) && x.dtype() == y.dtype(),
          base::str("expected '", first, "' and '", second, "' both of f32 or both of f64, found ",
                    in_words(x), " and ", in_words(y)));
  return broadcast_together(e.b, {x, y});
}

Values complex(Emit& e) {
  const Values v = parts(e, "real", "imag");
  return {e.b.complex(v[0], v[1])};
}

Values polar(Emit& e) {
  const Values v = parts(e, "abs", "angle");
  return {e.b.complex(e.b.multiply(v[0], e.b.cosine(v[1])), e.b.multiply(v[0], e.b.sine(v[1])))};
}

Values conjugate(Emit& e) { return {e.b.conjugate(e.tensor("self"))}; }

constexpr Row kComplexRows[] = {
    {.name = "aten::complex", .emit = complex},
    {.name = "aten::polar", .emit = polar},
    {.name = "aten::_conj_physical", .emit = conjugate},
};

// Sorted. Other rows that only move, compare or add elements may be added.
constexpr std::array kTakeComplex = std::to_array<std::string_view>({
    "aten::_cholesky_solve_helper",
    "aten::_conj_physical",
    "aten::_fft_c2c",
    "aten::_fft_c2r",
    "aten::_fft_r2c",
    "aten::_index_put_impl",
    "aten::_linalg_eigh",
    "aten::_linalg_svd",
    "aten::abs",
    "aten::add.Scalar",
    "aten::add.Tensor",
    "aten::addbmm",
    "aten::addcdiv",
    "aten::addcmul",
    "aten::addmm",
    "aten::addmv",
    "aten::all",
    "aten::all.dim",
    "aten::all.dims",
    "aten::angle",
    "aten::any",
    "aten::any.dim",
    "aten::any.dims",
    "aten::baddbmm",
    "aten::bmm",
    "aten::cat",
    "aten::cholesky_inverse",
    "aten::constant_pad_nd",
    "aten::cos",
    "aten::count_nonzero.dim_IntList",
    "aten::cumprod",
    "aten::cumsum",
    "aten::diag_embed",
    "aten::diagonal_backward",
    "aten::diagonal_scatter",
    "aten::div.Scalar",
    "aten::div.Tensor",
    "aten::dot",
    "aten::embedding_dense_backward",
    "aten::eq.Scalar",
    "aten::eq.Tensor",
    "aten::exp",
    "aten::expm1",
    "aten::eye",
    "aten::eye.m",
    "aten::fill.Scalar",
    "aten::fill.Tensor",
    "aten::flip",
    "aten::gather",
    "aten::geqrf",
    "aten::index.Tensor",
    "aten::index_add",
    "aten::index_copy",
    "aten::index_fill.int_Scalar",
    "aten::index_fill.int_Tensor",
    "aten::index_put",
    "aten::index_select",
    "aten::isinf",
    "aten::isnan",
    "aten::linalg_cholesky_ex",
    "aten::linalg_householder_product",
    "aten::linalg_inv_ex",
    "aten::linalg_lu",
    "aten::linalg_lu_factor_ex",
    "aten::linalg_lu_solve",
    "aten::linalg_matrix_exp",
    "aten::linalg_qr",
    "aten::linalg_solve_triangular",
    "aten::linalg_vector_norm",
    "aten::log",
    "aten::log10",
    "aten::log1p",
    "aten::log2",
    "aten::logical_and",
    "aten::logical_not",
    "aten::logical_or",
    "aten::logical_xor",
    "aten::lu_unpack",
    "aten::masked_fill.Scalar",
    "aten::masked_fill.Tensor",
    "aten::mean",
    "aten::mean.dim",
    "aten::mm",
    "aten::mul.Scalar",
    "aten::mul.Tensor",
    "aten::ne.Scalar",
    "aten::ne.Tensor",
    "aten::neg",
    "aten::norm.Scalar",
    "aten::norm.ScalarOpt_dim",
    "aten::norm.ScalarOpt_dim_dtype",
    "aten::norm.ScalarOpt_dtype",
    "aten::ormqr",
    "aten::pow.Scalar",
    "aten::pow.Tensor_Scalar",
    "aten::pow.Tensor_Tensor",
    "aten::prod",
    "aten::prod.dim_int",
    "aten::reciprocal",
    "aten::repeat",
    "aten::roll",
    "aten::rsqrt",
    "aten::rsub.Scalar",
    "aten::rsub.Tensor",
    "aten::scatter.src",
    "aten::scatter.value",
    "aten::scatter_add",
    "aten::select_backward",
    "aten::select_scatter",
    "aten::sgn",
    "aten::sigmoid",
    "aten::sigmoid_backward",
    "aten::sin",
    "aten::slice_backward",
    "aten::slice_scatter",
    "aten::sqrt",
    "aten::stack",
    "aten::sub.Scalar",
    "aten::sub.Tensor",
    "aten::sum",
    "aten::sum.dim_IntList",
    "aten::take",
    "aten::tanh",
    "aten::tanh_backward",
    "aten::trace",
    "aten::triangular_solve",
    "aten::tril",
    "aten::triu",
    "aten::unfold_backward",
    "aten::vdot",
    "aten::where.self",
    "aten::zero",
    "sluice::as_type",
    "sluice::broadcast",
    "sluice::conjugate",
    "sluice::convert",
    "sluice::grow",
    "sluice::hold",
    "sluice::negate",
    "sluice::view",
    "sluice::view_write",
    "sluice::zeros",
});
static_assert(std::is_sorted(kTakeComplex.begin(), kTakeComplex.end()));

}  // namespace

std::span<const std::string_view> names_of_complex_rows() { return kTakeComplex; }

bool takes_complex(const Row& row) {
  return std::binary_search(kTakeComplex.begin(), kTakeComplex.end(), row.name);
}

std::span<const Row> complex_rows() { return kComplexRows; }

}  // namespace sluice::ops
