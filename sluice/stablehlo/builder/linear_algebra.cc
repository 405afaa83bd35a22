// Factorizations and triangular systems.
#include "sluice/stablehlo/builder/impl.h"

namespace sluice::stablehlo {
namespace {

// Throws unless the last two dimensions are a square matrix.
void check_square(std::string_view op, Value x) {
  const int64_t rank = x.rank();
  if (rank < 2 || x.dim(rank - 1) != x.dim(rank - 2))
    reject(op, "expected square matrices in the last two dimensions, found ", x.type().str());
}

}  // namespace

Value Builder::cholesky(Value x, bool lower) {
  constexpr std::string_view kOp = "stablehlo.cholesky";
  impl_->use(kOp, x);
  impl_->check_dtype(kOp, x, kFractions);
  check_square(kOp, x);
  return impl_->add(kOp, {x}, Attributes().flag("lower", lower), x.type());
}

Value Builder::triangular_solve(Value a, Value b, const TriangularSystem& system) {
  constexpr std::string_view kOp = "stablehlo.triangular_solve";
  impl_->use(kOp, {a, b});
  impl_->check_dtype(kOp, a, kFractions);
  check_square(kOp, a);
  const int64_t rank = a.rank();
  bool fits = a.dtype() == b.dtype() && b.rank() == rank;
  for (int64_t d = 0; fits && d < rank - 2; ++d) fits = a.dim(d) == b.dim(d);
  if (!fits || b.dim(system.left ? rank - 2 : rank - 1) != a.dim(rank - 1))
    reject(kOp, "the right side must have the matrices' element type, batch dimensions and size, found ",
           a.type().str(), " and ", b.type().str(), system.left ? " (left side)" : " (right side)");
  return impl_->add(kOp, {a, b},
                    Attributes()
                        .flag("left_side", system.left)
                        .flag("lower", system.lower)
                        .flag("unit_diagonal", system.unit)
                        .raw("transpose_a", system.transpose ? "#stablehlo<transpose TRANSPOSE>"
                                                             : "#stablehlo<transpose NO_TRANSPOSE>"),
                    b.type());
}

}  // namespace sluice::stablehlo
