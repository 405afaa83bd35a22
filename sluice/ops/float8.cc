// float8 (e4m3fn and e5m2): its products, and the list of rows of other families that take it. As in LibTorch
// it is a type for storing numbers: arithmetic is refused, except products, which are scaled.
#include "sluice/ops/row_types.h"

#include <algorithm>
#include <array>

#include "sluice/base/text/join.h"
#include "sluice/ops/common.h"

namespace sluice::ops {
namespace {

// A scale of the whole operand (one number), or of each of its rows or columns.
struct Scale {
  Value value;
  bool whole;
};

// `dim`: 0 for the rows of `self`, 1 for the columns of `mat2`, in the product of these dims.
Scale scale_of(Emit& e, std::string_view name, const Dims& product, int64_t dim) {
  const Value scale = e.tensor(name);
  const bool whole = scale.type().numel() == 1;
  Dims by_line = {1, 1};
  by_line[static_cast<size_t>(dim)] = product[static_cast<size_t>(dim)];
  e.check(scale.dtype() == DType::kF32 && (whole || scale.dims() == by_line),
          base::str("expected '", name, "' of Float with one element or of shape [",
                    base::join(by_line, ", "), "], found ", in_words(scale)));
  return {whole ? e.b.reshape(scale, {}) : scale, whole};
}

Value scaled(Builder& b, Value x, const Scale& scale) {
  return b.multiply(x, b.broadcast(scale.value, x.dims()));
}

// Returns ((scale_a self) @ (scale_b mat2) + bias) / scale_result, computed in f32, as LibTorch's CPU does.
// XLA's GPU compiler turns this, a product whose operands are converted from float8 and scaled as a whole,
// into a float8 GEMM; other compilers do the conversion. Scales of lines multiply the product: with them on
// the operands, there would be no such GEMM.
Values scaled_mm(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self"), mat2 = e.tensor("mat2");
  e.check(self.rank() == 2 && mat2.rank() == 2 && self.dim(1) == mat2.dim(0) &&
              stablehlo::is_float8(self.dtype()) && stablehlo::is_float8(mat2.dtype()),
          base::str("expected float8 matrices [M, K] and [K, N], found ", in_words(self), " and ",
                    in_words(mat2)));
  const Dims dims = {self.dim(0), mat2.dim(1)};
  const Scale of_self = scale_of(e, "scale_a", dims, 0), of_mat2 = scale_of(e, "scale_b", dims, 1);
  Value lhs = b.convert(self, DType::kF32), rhs = b.convert(mat2, DType::kF32);
  if (of_self.whole) lhs = scaled(b, lhs, of_self);
  if (of_mat2.whole) rhs = scaled(b, rhs, of_mat2);
  Value product = b.dot_general(lhs, rhs, {.lhs_contract = {1}, .rhs_contract = {0}});
  if (!of_self.whole) product = scaled(b, product, of_self);
  if (!of_mat2.whole) product = scaled(b, product, of_mat2);
  if (const Value bias = e.tensor_or_empty("bias")) {
    e.check(bias.dims() == Dims{dims[1]},
            base::str("expected a 'bias' of ", dims[1], " elements, found ", in_words(bias)));
    product = b.add(product, b.broadcast(to(b, bias, DType::kF32), dims));
  }
  const DType dtype = e.dtype("out_dtype").value_or(self.dtype());
  if (const Value result_scale = e.tensor_or_empty("scale_result");
      result_scale && stablehlo::is_float8(dtype)) {
    product = b.divide(product, b.broadcast(b.reshape(result_scale, {}), dims));
  }
  return {to(b, product, dtype)};
}

constexpr Row kFloat8Rows[] = {
    {.name = "aten::_scaled_mm", .emit = scaled_mm},
};

// Sorted. The rows that LibTorch's own CPU supports: they move, choose or compare elements, or multiply.
constexpr std::array kTakeFloat8 = std::to_array<std::string_view>({
    "aten::_scaled_mm",    "aten::abs",
    "aten::cat",           "aten::constant_pad_nd",
    "aten::eq.Scalar",     "aten::eq.Tensor",
    "aten::fill.Scalar",   "aten::fill.Tensor",
    "aten::flip",          "aten::index.Tensor",
    "aten::index_put",     "aten::index_select",
    "aten::isnan",         "aten::ne.Scalar",
    "aten::ne.Tensor",     "aten::repeat",
    "aten::roll",          "aten::select_scatter",
    "aten::slice_scatter", "aten::stack",
    "aten::where.self",    "aten::zero",
    "sluice::as_type",     "sluice::broadcast",
    "sluice::convert",     "sluice::grow",
    "sluice::hold",        "sluice::view",
    "sluice::view_write",  "sluice::zeros",
});
static_assert(std::is_sorted(kTakeFloat8.begin(), kTakeFloat8.end()));

}  // namespace

std::span<const std::string_view> names_of_float8_rows() { return kTakeFloat8; }

bool takes_float8(const Row& row) {
  return std::binary_search(kTakeFloat8.begin(), kTakeFloat8.end(), row.name);
}

std::span<const Row> float8_rows() { return kFloat8Rows; }

}  // namespace sluice::ops
