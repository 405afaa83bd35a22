// Comparisons and logic: results are predicates.
#include <cmath>

#include "sluice/ops/common.h"

namespace sluice::ops {
namespace {

template <Compare Direction>
Values comparison(Emit& e) {
  const Values v = operands(e, e.promote({"self", "other"}), {"self", "other"});
  return {e.b.compare(v[0], v[1], Direction)};
}

template <Value (Builder::*Fn)(Value, Value)>
Values logical(Emit& e) {
  Value x = to(e.b, e.tensor("self"), DType::kPred), y = to(e.b, e.tensor("other"), DType::kPred);
  const Values v = broadcast_together(e.b, {x, y});
  return {(e.b.*Fn)(v[0], v[1])};
}

Values logical_not(Emit& e) { return {e.b.not_(to(e.b, e.tensor("self"), DType::kPred))}; }

Values isnan(Emit& e) { return {is_nan(e.b, e.tensor("self"))}; }

// Returns whether an element equals plus infinity, minus infinity, or either of them.
Values is_infinity(Emit& e, bool plus, bool minus) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  if (!stablehlo::is_float(x.dtype())) return {b.splat(0, Type{DType::kPred, x.dims()})};
  if (plus && minus) return {is_equal(b, b.abs(x), INFINITY)};
  return {is_equal(b, x, plus ? INFINITY : -INFINITY)};
}
Values isinf(Emit& e) {
  Value x = e.tensor("self");
  if (!stablehlo::is_complex(x.dtype())) return is_infinity(e, true, true);
  auto infinite = [&](Value part) { return is_equal(e.b, e.b.abs(part), INFINITY); };
  return {e.b.or_(infinite(e.b.real(x)), infinite(e.b.imaginary(x)))};
}
Values isposinf(Emit& e) { return is_infinity(e, true, false); }
Values isneginf(Emit& e) { return is_infinity(e, false, true); }

const Row kCompareRows[] = {
    {.name = "aten::eq.Scalar", .emit = comparison<Compare::kEq>},
    {.name = "aten::eq.Tensor", .emit = comparison<Compare::kEq>},
    {.name = "aten::ge.Scalar", .emit = comparison<Compare::kGe>},
    {.name = "aten::ge.Tensor", .emit = comparison<Compare::kGe>},
    {.name = "aten::gt.Scalar", .emit = comparison<Compare::kGt>},
    {.name = "aten::gt.Tensor", .emit = comparison<Compare::kGt>},
    {.name = "aten::le.Scalar", .emit = comparison<Compare::kLe>},
    {.name = "aten::le.Tensor", .emit = comparison<Compare::kLe>},
    {.name = "aten::lt.Scalar", .emit = comparison<Compare::kLt>},
    {.name = "aten::lt.Tensor", .emit = comparison<Compare::kLt>},
    {.name = "aten::ne.Scalar", .emit = comparison<Compare::kNe>},
    {.name = "aten::ne.Tensor", .emit = comparison<Compare::kNe>},
    {.name = "aten::isinf", .emit = isinf},
    {.name = "aten::isnan", .emit = isnan},
    {.name = "aten::isneginf", .emit = isneginf},
    {.name = "aten::isposinf", .emit = isposinf},
    {.name = "aten::logical_and", .emit = logical<&Builder::and_>},
    {.name = "aten::logical_not", .emit = logical_not},
    {.name = "aten::logical_or", .emit = logical<&Builder::or_>},
    {.name = "aten::logical_xor", .emit = logical<&Builder::xor_>},
};

}  // namespace

std::span<const Row> compare_rows() { return kCompareRows; }

}  // namespace sluice::ops
