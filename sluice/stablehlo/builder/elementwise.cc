#include "sluice/stablehlo/builder/elementwise.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "sluice/stablehlo/builder/impl.h"

namespace sluice::stablehlo {
namespace {

constexpr std::array kChloUnary = {"acos",    "acosh", "asin",    "asinh", "atan",   "atanh", "cosh",
                                   "digamma", "erf",   "erf_inv", "erfc",  "lgamma", "sinh",  "tan"};
constexpr std::array kChloBinary = {"next_after", "polygamma", "zeta"};

const char* direction_text(Compare direction) {
  switch (direction) {
    case Compare::kEq:
      return "#stablehlo<comparison_direction EQ>";
    case Compare::kNe:
      return "#stablehlo<comparison_direction NE>";
    case Compare::kLt:
      return "#stablehlo<comparison_direction LT>";
    case Compare::kLe:
      return "#stablehlo<comparison_direction LE>";
    case Compare::kGt:
      return "#stablehlo<comparison_direction GT>";
    case Compare::kGe:
      return "#stablehlo<comparison_direction GE>";
  }
  return "";
}

template <typename Names>
void check_chlo_name(const Names& names, std::string_view name, std::string_view operands) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  reject("chlo." + std::string(name), "no such operation of ", operands,
         "; known are: ", base::join(names, ", "));
}

}  // namespace

bool is_elementwise(const Operation& op) {
  // Sorted.
  static constexpr auto kNames = std::to_array<std::string_view>({
      "abs",
      "add",
      "and",
      "atan2",
      "cbrt",
      "ceil",
      "clamp",
      "compare",
      "complex",
      "convert",
      "cosine",
      "count_leading_zeros",
      "divide",
      "exponential",
      "exponential_minus_one",
      "floor",
      "imag",
      "is_finite",
      "log",
      "log_plus_one",
      "logistic",
      "maximum",
      "minimum",
      "multiply",
      "negate",
      "not",
      "or",
      "popcnt",
      "power",
      "real",
      "reduce_precision",
      "remainder",
      "round_nearest_afz",
      "round_nearest_even",
      "rsqrt",
      "select",
      "shift_left",
      "shift_right_arithmetic",
      "shift_right_logical",
      "sign",
      "sine",
      "sqrt",
      "subtract",
      "tan",
      "tanh",
      "xor",
  });
  static_assert(std::ranges::is_sorted(kNames));
  constexpr std::string_view kPrefix = "stablehlo.";
  return op.name.starts_with(kPrefix) &&
         std::ranges::binary_search(kNames, std::string_view(op.name).substr(kPrefix.size()));
}

Value Builder::Impl::unary(std::string_view op, Value x, unsigned allowed) {
  use(op, x);
  check_dtype(op, x, allowed);
  return add(op, std::span<const Value>(&x, 1), {}, entry(x));
}

Value Builder::Impl::binary(std::string_view op, Value a, Value b, unsigned allowed) {
  use(op, {a, b});
  check_same(op, a, b);
  check_dtype(op, a, allowed);
  const std::array operands = {a, b};
  return add(op, operands, {}, entry(a));
}

// Returns whether a NaN must be handled by comparisons. In the bodies of collectives it must not: plugins
// recognise those by their one operation.
bool Builder::Impl::spell_out_nan(Value v) const {
  return explicit_nan && is_float(v.dtype()) && scopes.back().op != kAllReduce &&
         scopes.back().op != kReduceScatter;
}

// The compiler's own operation keeps the first operand's NaN everywhere, but XLA's CPU backend drops the
// second operand's. So a constant goes second. XLA makes a clamp of a maximum and a minimum with constants in
// a row, and the constants go first in a clamp, so the second one is spelled out.
Value Builder::Impl::extreme(std::string_view op, Value a, Value b, Compare wins) {
  use(op, {a, b});
  check_dtype(op, a, kAnything & ~kComplex);
  if (!spell_out_nan(a)) return binary(op, a, b, kAnything);
  if (info(a).constant) std::swap(a, b);
  if (info(b).constant && !info(a).bounded) {
    const Value result = binary(op, a, b, kAnything);
    values[static_cast<size_t>(result.id_)].bounded = true;
    return result;
  }
  check_same(op, a, b);
  return owner->composite(op, {a, b}, {}, [&] {
    const Value first = owner->or_(owner->compare(a, b, wins), owner->compare(a, a, Compare::kNe));
    return Values{owner->select(first, a, b)};
  })[0];
}

Value Builder::abs(Value x) {
  impl_->use("stablehlo.abs", x);
  if (is_unsigned(x.dtype())) return x;
  if (is_complex(x.dtype()))
    return impl_->add("stablehlo.abs", {x}, {}, Type{real_dtype(x.dtype()), x.dims()});
  return impl_->unary("stablehlo.abs", x, kSigned | kFloats);
}

Value Builder::sign(Value x) {
  impl_->use("stablehlo.sign", x);
  if (is_unsigned(x.dtype())) return minimum(x, splat(1, x.type()));
  return impl_->unary("stablehlo.sign", x, kSigned | kFractions);
}

Value Builder::cbrt(Value x) { return impl_->unary("stablehlo.cbrt", x, kFloats); }
Value Builder::ceil(Value x) { return impl_->unary("stablehlo.ceil", x, kFloats); }
Value Builder::cosine(Value x) { return impl_->unary("stablehlo.cosine", x, kFractions); }
Value Builder::exp(Value x) { return impl_->unary("stablehlo.exponential", x, kFractions); }
Value Builder::expm1(Value x) { return impl_->unary("stablehlo.exponential_minus_one", x, kFractions); }
Value Builder::floor(Value x) { return impl_->unary("stablehlo.floor", x, kFloats); }
Value Builder::log(Value x) { return impl_->unary("stablehlo.log", x, kFractions); }
Value Builder::log1p(Value x) { return impl_->unary("stablehlo.log_plus_one", x, kFractions); }
Value Builder::logistic(Value x) { return impl_->unary("stablehlo.logistic", x, kFractions); }
Value Builder::negate(Value x) { return impl_->unary("stablehlo.negate", x, kNumbers); }
Value Builder::not_(Value x) { return impl_->unary("stablehlo.not", x, kPredicates | kIntegers); }
Value Builder::popcount(Value x) { return impl_->unary("stablehlo.popcnt", x, kIntegers); }
Value Builder::round_even(Value x) { return impl_->unary("stablehlo.round_nearest_even", x, kFloats); }
Value Builder::round_afz(Value x) { return impl_->unary("stablehlo.round_nearest_afz", x, kFloats); }
Value Builder::rsqrt(Value x) { return impl_->unary("stablehlo.rsqrt", x, kFractions); }
Value Builder::sine(Value x) { return impl_->unary("stablehlo.sine", x, kFractions); }
Value Builder::sqrt(Value x) { return impl_->unary("stablehlo.sqrt", x, kFractions); }
Value Builder::tanh(Value x) { return impl_->unary("stablehlo.tanh", x, kFractions); }

Value Builder::is_finite(Value x) {
  constexpr std::string_view kOp = "stablehlo.is_finite";
  impl_->use(kOp, x);
  impl_->check_dtype(kOp, x, kFloats);
  return impl_->add(kOp, {x}, {}, Type{DType::kPred, x.dims()});
}

Value Builder::chlo(std::string_view name, Value x) {
  check_chlo_name(kChloUnary, name, "one operand");
  return impl_->unary("chlo." + std::string(name), x, kFloats);
}

Value Builder::chlo(std::string_view name, Value a, Value b) {
  check_chlo_name(kChloBinary, name, "two operands");
  return impl_->binary("chlo." + std::string(name), a, b, kFloats);
}

Value Builder::convert(Value x, DType dtype) {
  impl_->use("stablehlo.convert", x);
  if (x.dtype() == dtype) return x;
  return impl_->add("stablehlo.convert", {x}, {}, Type{dtype, x.dims()});
}

Value Builder::bitcast_convert(Value x, DType dtype) {
  constexpr std::string_view kOp = "stablehlo.bitcast_convert";
  impl_->use(kOp, x);
  if (x.dtype() == dtype) return x;
  if (x.dtype() == DType::kPred || dtype == DType::kPred || is_complex(x.dtype()) || is_complex(dtype))
    reject(kOp, "expected element types of whole bytes, not complex, found ", dtype_name(x.dtype()), " and ",
           dtype_name(dtype));
  Dims dims = x.dims();
  const auto from = static_cast<int64_t>(dtype_size(x.dtype())), to = static_cast<int64_t>(dtype_size(dtype));
  if (from > to) dims.push_back(from / to);
  if (from < to) {
    if (dims.empty() || dims.back() != to / from)
      reject(kOp, "an element of ", dtype_name(dtype), " is made of ", to / from, " of ",
             dtype_name(x.dtype()), " in the last dimension, found ", x.type().str());
    dims.pop_back();
  }
  return impl_->add(kOp, {x}, {}, Type{dtype, dims});
}

Value Builder::add(Value a, Value b) { return impl_->binary("stablehlo.add", a, b, kAnything); }
Value Builder::subtract(Value a, Value b) { return impl_->binary("stablehlo.subtract", a, b, kNumbers); }
Value Builder::multiply(Value a, Value b) { return impl_->binary("stablehlo.multiply", a, b, kAnything); }
Value Builder::divide(Value a, Value b) { return impl_->binary("stablehlo.divide", a, b, kNumbers); }
Value Builder::remainder(Value a, Value b) {
  return impl_->binary("stablehlo.remainder", a, b, kIntegers | kFloats);
}
Value Builder::power(Value a, Value b) { return impl_->binary("stablehlo.power", a, b, kNumbers); }
Value Builder::maximum(Value a, Value b) { return impl_->extreme("stablehlo.maximum", a, b, Compare::kGe); }
Value Builder::minimum(Value a, Value b) { return impl_->extreme("stablehlo.minimum", a, b, Compare::kLe); }
Value Builder::and_(Value a, Value b) {
  return impl_->binary("stablehlo.and", a, b, kPredicates | kIntegers);
}
Value Builder::or_(Value a, Value b) { return impl_->binary("stablehlo.or", a, b, kPredicates | kIntegers); }
Value Builder::xor_(Value a, Value b) {
  return impl_->binary("stablehlo.xor", a, b, kPredicates | kIntegers);
}
Value Builder::shift_left(Value a, Value b) { return impl_->binary("stablehlo.shift_left", a, b, kIntegers); }
Value Builder::shift_right_arithmetic(Value a, Value b) {
  return impl_->binary("stablehlo.shift_right_arithmetic", a, b, kIntegers);
}
Value Builder::shift_right_logical(Value a, Value b) {
  return impl_->binary("stablehlo.shift_right_logical", a, b, kIntegers);
}
Value Builder::atan2(Value a, Value b) { return impl_->binary("stablehlo.atan2", a, b, kFloats); }

Value Builder::compare(Value a, Value b, Compare direction) {
  constexpr std::string_view kOp = "stablehlo.compare";
  impl_->use(kOp, {a, b});
  impl_->check_same(kOp, a, b);
  if (is_complex(a.dtype()) && direction != Compare::kEq && direction != Compare::kNe)
    reject(kOp, "complex numbers are equal or not, but have no order, found ", a.type().str());
  return impl_->add(kOp, {a, b}, Attributes().raw("comparison_direction", direction_text(direction)),
                    Type{DType::kPred, a.dims()});
}

Value Builder::select(Value predicate, Value on_true, Value on_false) {
  constexpr std::string_view kOp = "stablehlo.select";
  impl_->use(kOp, {predicate, on_true, on_false});
  impl_->check_same(kOp, on_true, on_false);
  if (predicate.dtype() != DType::kPred || (predicate.rank() != 0 && predicate.dims() != on_true.dims())) {
    reject(kOp, "the predicate must be i1 and a scalar or of the operands' dimensions, found ",
           predicate.type().str(), " for ", on_true.type().str());
  }
  return impl_->add(kOp, {predicate, on_true, on_false}, {}, on_true.type());
}

Value Builder::clamp(Value low, Value x, Value high) {
  constexpr std::string_view kOp = "stablehlo.clamp";
  impl_->use(kOp, {low, x, high});
  for (Value bound : {low, high}) {
    if (bound.dtype() != x.dtype() || (bound.rank() != 0 && bound.dims() != x.dims())) {
      reject(kOp, "a bound must be a scalar or have the operand's type, found ", bound.type().str(), " for ",
             x.type().str());
    }
  }
  return impl_->add(kOp, {low, x, high}, {}, x.type());
}

}  // namespace sluice::stablehlo
