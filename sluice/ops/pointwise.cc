// Element-wise arithmetic and functions.
#include <cmath>
#include <numbers>

#include "sluice/base/text/join.h"
#include "sluice/ops/special/complex_numbers.h"
#include "sluice/ops/special/special.h"

namespace sluice::ops {
namespace {

using special::angle_of_point;
using special::magnitude;

// ---- one argument ----

// Applies one function to real numbers and another one to complex numbers.
template <auto OfReal, auto OfComplex>
Value by_type(Builder& b, Value x) {
  return stablehlo::is_complex(x.dtype()) ? OfComplex(b, x) : std::invoke(OfReal, b, x);
}
constexpr auto logarithm = by_type<&Builder::log, special::complex_log>;
constexpr auto square_root = by_type<&Builder::sqrt, special::complex_sqrt>;
constexpr auto inverse_square_root = by_type<&Builder::rsqrt, special::complex_rsqrt>;

// A complex 0 divides as 0 + 0i, with any signs of its parts.
Value divide(Builder& b, Value x, Value y) {
  if (stablehlo::is_complex(y.dtype())) y = b.select(is_equal(b, y, 0), zeros(b, y.type()), y);
  return b.divide(x, y);
}

Value exp2(Builder& b, Value x) { return b.power(number_like(b, 2, x), x); }
// Returns log(x) times a real number. For a complex number each part is multiplied: -infinity times a zero
// part would be NaN.
Value scaled_log(Builder& b, Value x, double scale) {
  const Value log = logarithm(b, x);
  if (!stablehlo::is_complex(x.dtype())) return b.multiply(log, number_like(b, scale, log));
  const auto part = [&](Value v) { return b.multiply(v, number_like(b, scale, v)); };
  return b.complex(part(b.real(log)), part(b.imaginary(log)));
}
Value log2(Builder& b, Value x) { return scaled_log(b, x, 1 / std::numbers::ln2); }
Value log10(Builder& b, Value x) { return scaled_log(b, x, 1 / std::numbers::ln10); }
Value reciprocal(Builder& b, Value x) { return divide(b, number_like(b, 1, x), x); }
Value erfc(Builder& b, Value x) { return b.chlo("erfc", x); }
Value erfinv(Builder& b, Value x) { return b.chlo("erf_inv", x); }
Value lgamma(Builder& b, Value x) { return b.chlo("lgamma", x); }
// At ±0 the sign of the pole depends on the sign of the 0.
Value digamma(Builder& b, Value x) {
  Value infinity = number_like(b, INFINITY, x);
  Value pole = b.select(sign_bit(b, x), infinity, b.negate(infinity));
  return b.select(is_equal(b, x, 0), pole, b.chlo("digamma", x));
}
Value acos(Builder& b, Value x) { return b.chlo("acos", x); }
Value asin(Builder& b, Value x) { return b.chlo("asin", x); }
Value atan(Builder& b, Value x) { return b.chlo("atan", x); }
Value acosh(Builder& b, Value x) { return b.chlo("acosh", x); }
Value asinh(Builder& b, Value x) { return b.chlo("asinh", x); }
Value atanh(Builder& b, Value x) { return b.chlo("atanh", x); }
Value cosh(Builder& b, Value x) { return b.chlo("cosh", x); }
Value sinh(Builder& b, Value x) { return b.chlo("sinh", x); }
Value tan(Builder& b, Value x) { return b.chlo("tan", x); }

Value sinc(Builder& b, Value x) {
  Value scaled = b.multiply(x, number_like(b, std::numbers::pi, x));
  return b.select(is_equal(b, x, 0), number_like(b, 1, x), b.divide(b.sine(scaled), scaled));
}

Value angle(Builder& b, Value x) {
  if (stablehlo::is_complex(x.dtype())) return angle_of_point(b, b.imaginary(x), b.real(x));
  Value result = b.select(is_less(b, x, 0), number_like(b, std::numbers::pi, x), number_like(b, 0, x));
  return b.select(is_nan(b, x), x, result);
}

// The angle of a complex number is real.
Values angle_of(Emit& e) {
  const DType dtype = e.promote_float({"self"});
  Value result = angle(e.b, e.operand("self", compute_type(dtype)));
  return {to(e.b, result, stablehlo::real_dtype(dtype))};
}

Value entropy(Builder& b, Value x) {
  Value inside = b.negate(b.multiply(x, b.log(x)));
  Value at_zero = b.select(is_equal(b, x, 0), number_like(b, 0, x), inside);
  return b.select(is_less(b, x, 0), number_like(b, -INFINITY, x), at_zero);
}

// Integers need no rounding.
template <Value (Builder::*Fn)(Value)>
Values round_to_whole(Emit& e) {
  Value x = e.tensor("self");
  return {stablehlo::is_float(x.dtype()) ? (e.b.*Fn)(x) : x};
}

Values trunc(Emit& e) {
  Value x = e.tensor("self");
  return {stablehlo::is_float(x.dtype()) ? truncate(e.b, x) : x};
}

Values frac(Emit& e) {
  Value x = e.tensor("self");
  return {e.b.subtract(x, truncate(e.b, x))};
}

Values round_decimals(Emit& e) {
  Value x = e.tensor("self");
  if (!stablehlo::is_float(x.dtype())) return {x};
  const int64_t decimals = e.integer("decimals");
  if (decimals == 0) return {e.b.round_even(x)};
  Value wide = to(e.b, x, compute_type(x.dtype()));
  Value power = number_like(e.b, std::pow(10.0, static_cast<double>(std::abs(decimals))), wide);
  Value rounded = decimals > 0 ? e.b.divide(e.b.round_even(e.b.multiply(wide, power)), power)
                               : e.b.multiply(e.b.round_even(e.b.divide(wide, power)), power);
  return {to(e.b, rounded, x.dtype())};
}

Values abs(Emit& e) {
  Value x = e.tensor("self");
  return {x.dtype() == DType::kPred || stablehlo::is_unsigned(x.dtype()) ? x : magnitude(e.b, x)};
}

Values neg(Emit& e) {
  Value x = e.tensor("self");
  e.check(x.dtype() != DType::kPred, "negation of bool is not defined; use logical_not");
  return {e.b.negate(x)};
}

Values sign(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  if (x.dtype() == DType::kPred) return {x};
  if (stablehlo::is_unsigned(x.dtype()))
    return {to(b, b.compare(x, number_like(b, 0, x), Compare::kNe), x.dtype())};
  if (stablehlo::is_complex(x.dtype())) {
    Value size = magnitude(b, x);
    Value unit = b.complex(b.divide(b.real(x), size), b.divide(b.imaginary(x), size));
    return {b.select(is_equal(b, size, 0), number_like(b, 0, x), unit)};
  }
  Value result = b.sign(x);
  if (stablehlo::is_float(x.dtype())) result = b.select(is_nan(b, x), number_like(b, 0, x), result);
  return {result};
}

Values signbit(Emit& e) { return {sign_bit(e.b, e.tensor("self"))}; }

Values bitwise_not(Emit& e) { return {e.b.not_(e.tensor("self"))}; }

Values logit(Emit& e) {
  const DType dtype = e.promote_float({"self"});
  Value x = e.operand("self", compute_type(dtype));
  Builder& b = e.b;
  if (e.has("eps")) x = clamp_between(b, x, e.number("eps"), 1 - e.number("eps"));
  return {to(b, b.log(b.divide(x, b.subtract(number_like(b, 1, x), x))), dtype)};
}

Values nan_to_num(Emit& e) {
  Value x = e.tensor("self");
  Builder& b = e.b;
  if (!stablehlo::is_float(x.dtype())) return {x};
  const double largest = largest_finite(x.dtype());
  auto replacement = [&](std::string_view name, double otherwise) {
    return e.has(name) ? e.scalar(name, x.dtype(), x.dims()) : number_like(b, otherwise, x);
  };
  Value result = b.select(is_nan(b, x), replacement("nan", 0), x);
  result = b.select(is_equal(b, x, INFINITY), replacement("posinf", largest), result);
  return {b.select(is_equal(b, x, -INFINITY), replacement("neginf", -largest), result)};
}

// ---- two arguments ----

// Returns `other` times alpha, for add, sub and rsub.
Value scaled_by_alpha(Emit& e, Value x) {
  if (e.is_constant("alpha", 1)) return x;
  return e.b.multiply(x, e.scalar("alpha", x.dtype(), x.dims()));
}

Values add(Emit& e) {
  const DType dtype = e.promote({"self", "other"});
  const Values v = operands(e, compute_type(dtype), {"self", "other"});
  return {to(e.b, e.b.add(v[0], scaled_by_alpha(e, v[1])), dtype)};
}

// Refuses a bool operand, even if the other operand makes the result a number.
void check_no_bool(Emit& e) {
  const bool self = e.promote({"self"}) == DType::kPred, other = e.promote({"other"}) == DType::kPred;
  e.check(
      !self || !other,
      "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
      "operator instead.");
  e.check(!self && !other,
          "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a "
          "mask, use the `~` or `logical_not()` operator instead.");
}

Values sub(Emit& e) {
  const DType dtype = e.promote({"self", "other"});
  check_no_bool(e);
  const Values v = operands(e, compute_type(dtype), {"self", "other"});
  return {to(e.b, e.b.subtract(v[0], scaled_by_alpha(e, v[1])), dtype)};
}

Values rsub(Emit& e) {
  const DType dtype = e.promote({"self", "other"});
  check_no_bool(e);
  const Values v = operands(e, compute_type(dtype), {"self", "other"});
  return {to(e.b, e.b.subtract(v[1], scaled_by_alpha(e, v[0])), dtype)};
}

// Returns whether a division's remainder has the other sign than the divisor.
Value needs_floor(Builder& b, Value rest, Value divisor) {
  Value zero = number_like(b, 0, rest);
  Value differs =
      b.compare(b.compare(rest, zero, Compare::kLt), b.compare(divisor, zero, Compare::kLt), Compare::kNe);
  return b.and_(b.compare(rest, zero, Compare::kNe), differs);
}

Value floor_quotient_of_integers(Builder& b, Value x, Value y) {
  Value quotient = b.divide(x, y);
  if (stablehlo::is_unsigned(x.dtype())) return quotient;
  Value rest = b.subtract(x, b.multiply(quotient, y));
  return b.select(needs_floor(b, rest, y), b.subtract(quotient, number_like(b, 1, quotient)), quotient);
}

// Python's floor division: exact even where floor(x / y) is off by one because x / y was rounded up to an
// integer.
Value floor_quotient_of_floats(Builder& b, Value x, Value y) {
  Value rest = b.remainder(x, y);
  Value one = number_like(b, 1, x);
  Value quotient = b.divide(b.subtract(x, rest), y);
  quotient = b.select(needs_floor(b, rest, y), b.subtract(quotient, one), quotient);
  Value whole = b.floor(quotient);
  whole = b.select(b.compare(b.subtract(quotient, whole), number_like(b, 0.5, x), Compare::kGt),
                   b.add(whole, one), whole);
  Value plain = b.divide(x, y);
  Value zero = b.select(sign_bit(b, plain), number_like(b, -0.0, x), number_like(b, 0, x));
  whole = b.select(is_equal(b, quotient, 0), zero, whole);
  return b.select(is_equal(b, y, 0), plain, whole);
}

Value floor_quotient(Builder& b, Value x, Value y) {
  return stablehlo::is_float(x.dtype()) ? floor_quotient_of_floats(b, x, y)
                                        : floor_quotient_of_integers(b, x, y);
}

// Checks that integers are not divided by zero.
template <auto Fn>
Values division(Emit& e) {
  const DType dtype = e.promote({"self", "other"});
  const Values v = operands(e, compute_type(dtype), {"self", "other"});
  if (stablehlo::is_integer(v[1].dtype()))
    e.expect({.argument = "other", .values = v[1], .rule = Expectation::Rule::kNonzero});
  return {to(e.b, std::invoke(Fn, e.b, v[0], v[1]), dtype)};
}

Values div_mode(Emit& e) {
  const std::string_view mode = e.text("rounding_mode");
  if (mode.empty()) return float_binary<divide>(e);
  if (mode == "floor") return division<floor_quotient>(e);
  e.check(mode == "trunc", "expected a rounding_mode of None, \"trunc\" or \"floor\"");
  return division<[](Builder& b, Value x, Value y) {
    Value quotient = b.divide(x, y);
    return stablehlo::is_float(x.dtype()) ? truncate(b, quotient) : quotient;
  }>(e);
}

// Returns the remainder with the divisor's sign, as Python's %.
Value modulo(Builder& b, Value x, Value y) {
  Value rest = b.remainder(x, y);
  if (stablehlo::is_unsigned(x.dtype())) return rest;
  return b.select(needs_floor(b, rest, y), b.add(rest, y), rest);
}

Value xlogy(Builder& b, Value x, Value y) {
  Value product = b.select(is_equal(b, x, 0), number_like(b, 0, x), b.multiply(x, b.log(y)));
  return b.select(is_nan(b, y), y, product);
}

Value xlog1py(Builder& b, Value x, Value y) {
  Value product = b.select(is_equal(b, x, 0), number_like(b, 0, x), b.multiply(x, b.log1p(y)));
  return b.select(is_nan(b, y), y, product);
}

Value logaddexp(Builder& b, Value x, Value y) {
  Value sum = b.add(b.maximum(x, y), b.log1p(b.exp(b.negate(b.abs(b.subtract(x, y))))));
  Value same_infinity = b.and_(b.compare(x, y, Compare::kEq), is_equal(b, b.abs(x), INFINITY));
  return b.select(same_infinity, x, sum);
}

Value logaddexp2(Builder& b, Value x, Value y) {
  Value sum = b.add(b.maximum(x, y),
                    log2(b, b.add(number_like(b, 1, x), exp2(b, b.negate(b.abs(b.subtract(x, y)))))));
  Value same_infinity = b.and_(b.compare(x, y, Compare::kEq), is_equal(b, b.abs(x), INFINITY));
  return b.select(same_infinity, x, sum);
}

// The result is NaN only if both operands are.
Value fmax(Builder& b, Value x, Value y) {
  return b.select(is_nan(b, x), y, b.select(is_nan(b, y), x, b.maximum(x, y)));
}
Value fmin(Builder& b, Value x, Value y) {
  return b.select(is_nan(b, x), y, b.select(is_nan(b, y), x, b.minimum(x, y)));
}

Value copysign(Builder& b, Value x, Value y) {
  Value size = b.abs(x);
  return b.select(sign_bit(b, y), b.negate(size), size);
}

Values heaviside(Emit& e) {
  Builder& b = e.b;
  const Value x = e.tensor("self"), values = e.tensor("values");
  e.check(x.dtype() == values.dtype(),
          base::str("expected values of the input's type, found ", in_words(values), " beside ", in_words(x),
                    "; convert one of them"));
  const Values v = operands(e, e.promote({"self", "values"}), {"self", "values"});
  Value step = to(b, b.compare(v[0], number_like(b, 0, v[0]), Compare::kGt), v[0].dtype());
  return {b.select(is_equal(b, v[0], 0), v[1], step)};
}

Value shift_right(Builder& b, Value x, Value y) {
  return stablehlo::is_unsigned(x.dtype()) ? b.shift_right_logical(x, y) : b.shift_right_arithmetic(x, y);
}

// Powers of integers by repeated squaring, once for each bit of the largest exponent: XLA's own power reads
// only six bits. For an exponent below 0, XLA's power is used.
Value whole_power(Builder& b, Value x, Value exponent) {
  const Value zero = b.splat(0, exponent.type()), one = b.splat(1, exponent.type());
  const Value negative = stablehlo::is_unsigned(exponent.dtype()) ? Value() : is_less(b, exponent, 0);
  const Value start[] = {one, x, negative ? b.select(negative, zero, exponent) : exponent};
  const Values end = b.while_(
      start,
      [](Builder& b, std::span<const Value> v) {
        const Value none = b.splat(0, v[2].type());
        return Values{b.reduce_or(b.compare(v[2], none, Compare::kNe), all_dims(v[2]))};
      },
      [](Builder& b, std::span<const Value> v) {
        const Value unit = b.splat(1, v[2].type());
        const Value odd = b.compare(b.and_(v[2], unit), unit, Compare::kEq);
        return Values{b.select(odd, b.multiply(v[0], v[1]), v[0]), b.multiply(v[1], v[1]),
                      b.shift_right_logical(v[2], unit)};
      });
  return negative ? b.select(negative, b.power(x, exponent), end[0]) : end[0];
}

Value power(Builder& b, Value x, Value exponent) {
  if (stablehlo::is_integer(x.dtype())) return whole_power(b, x, exponent);
  return stablehlo::is_complex(x.dtype()) ? special::complex_power(b, x, exponent) : b.power(x, exponent);
}

// Repeated squaring for small constant exponents, as exact as PyTorch's.
Value constant_power(Emit& e, Value x, double exponent) {
  Builder& b = e.b;
  if (exponent == 1) return x;
  if (exponent == 2) return b.multiply(x, x);
  if (exponent == 3) return b.multiply(b.multiply(x, x), x);
  if (stablehlo::is_integer(x.dtype()) || x.dtype() == DType::kPred) {
    e.check(exponent >= 0,
            "integers to negative integer powers are not allowed; convert the tensor to a float first");
    return b.power(x, number_like(b, exponent, x));
  }
  if (exponent == 0) return number_like(b, 1, x);
  if (exponent == 0.5) return square_root(b, x);
  if (exponent == -0.5) return inverse_square_root(b, x);
  if (exponent == -1) return reciprocal(b, x);
  if (exponent == -2) return reciprocal(b, b.multiply(x, x));
  return power(b, x, number_like(b, exponent, x));
}

Values pow_tensor_scalar(Emit& e) {
  const DType dtype = e.promote({"self", "exponent"});
  Value x = e.operand("self", compute_type(dtype));
  if (e.category("exponent") == Category::kComplex)
    return {power(e.b, x, e.scalar("exponent", x.dtype(), x.dims()))};
  return {to(e.b, constant_power(e, x, e.number("exponent")), dtype)};
}

Values pow(Emit& e) {
  const DType dtype = e.promote({"self", "exponent"});
  const Values v = operands(e, compute_type(dtype), {"self", "exponent"});
  return {to(e.b, power(e.b, v[0], v[1]), dtype)};
}

// For x below 1 the sum diverges, even where q is a pole.
Value zeta(Builder& b, Value x, Value q) {
  return b.select(is_less(b, x, 1), number_like(b, NAN, x), b.chlo("zeta", x, q));
}

Values polygamma(Emit& e) {
  const int64_t n = e.integer("n");
  e.check(n >= 0, "expected n of at least 0");
  const DType dtype = e.promote_float({"self"});
  Value x = e.operand("self", compute_type(dtype));
  Value result =
      n == 0 ? digamma(e.b, x) : e.b.chlo("polygamma", number_like(e.b, static_cast<double>(n), x), x);
  if (n > 0) {
    const double pole = n % 2 == 1 ? INFINITY : -INFINITY;
    result = e.b.select(is_equal(e.b, x, INFINITY), number_like(e.b, 0, x), result);
    result = e.b.select(is_equal(e.b, x, 0), number_like(e.b, pole, x), result);
  }
  return {to(e.b, result, dtype)};
}

// ---- three arguments ----

// Checks that an operand of lerp has the type of `self`, as LibTorch does.
void check_type_of_self(Emit& e, std::string_view name) {
  const DType self = e.promote({"self"}), found = e.promote({name});
  e.check(found == self,
          base::str("expected '", name, "' of the type of 'self', ", stablehlo::dtype_name(self), ", found ",
                    stablehlo::dtype_name(found), "; convert it"));
}

Values lerp_in(Emit& e, DType dtype) {
  e.check(stablehlo::is_float(dtype) || stablehlo::is_complex(dtype),
          "expected floats, found integers; convert the tensors to a float first");
  Builder& b = e.b;
  const Values v = operands(e, compute_type(dtype), {"self", "end", "weight"});
  Value one = number_like(b, 1, v[0]);
  Value step = b.subtract(v[1], v[0]);
  Value near_start = b.add(v[0], b.multiply(v[2], step));
  Value near_end = b.subtract(v[1], b.multiply(step, b.subtract(one, v[2])));
  return {to(b, b.select(is_less(b, b.abs(v[2]), 0.5), near_start, near_end), dtype)};
}

Values lerp_by_number(Emit& e) {
  check_type_of_self(e, "end");
  return lerp_in(e, e.promote({"self"}));
}

// A weight without dimensions is promoted with the other operands.
Values lerp(Emit& e) {
  check_type_of_self(e, "end");
  const DType common = e.promote({"self", "end", "weight"});
  if (e.operand("weight", compute_type(common)).rank() > 0) check_type_of_self(e, "weight");
  return lerp_in(e, common);
}

Values addcmul(Emit& e) {
  const DType dtype = e.promote({"self", "tensor1", "tensor2"});
  Builder& b = e.b;
  const Values v = operands(e, compute_type(dtype), {"self", "tensor1", "tensor2"});
  Value product = b.multiply(v[1], v[2]);
  if (!e.is_constant("value", 1))
    product = b.multiply(b.multiply(e.scalar("value", v[0].dtype(), v[0].dims()), v[1]), v[2]);
  return {to(b, b.add(v[0], product), dtype)};
}

Values addcdiv(Emit& e) {
  const DType dtype = e.promote({"self", "tensor1", "tensor2"});
  e.check(stablehlo::is_float(dtype) || stablehlo::is_complex(dtype),
          "integer division is not supported; convert the tensors to a float first");
  Builder& b = e.b;
  const Values v = operands(e, compute_type(dtype), {"self", "tensor1", "tensor2"});
  Value numerator = v[1];
  if (!e.is_constant("value", 1))
    numerator = b.multiply(e.scalar("value", v[0].dtype(), v[0].dims()), numerator);
  return {to(b, b.add(v[0], b.divide(numerator, v[2])), dtype)};
}

// A NaN in any operand wins; max wins over min.
Values clamp(Emit& e) {
  const DType dtype = e.promote({"self", "min", "max"});
  Builder& b = e.b;
  Values v = {e.operand("self", dtype)};
  const bool has_min = e.has("min"), has_max = e.has("max");
  e.check(has_min || has_max, "expected min or max or both, found neither");
  if (has_min) v.push_back(e.operand("min", dtype));
  if (has_max) v.push_back(e.operand("max", dtype));
  v = broadcast_together(b, v);
  Value result = v[0];
  if (has_min) result = b.maximum(result, v[1]);
  if (has_max) result = b.minimum(result, v.back());
  return {result};
}

Values clamp_min(Emit& e) {
  const DType dtype = e.promote({"self", "min"});
  const Values v = operands(e, dtype, {"self", "min"});
  return {e.b.maximum(v[0], v[1])};
}

Values clamp_max(Emit& e) {
  const DType dtype = e.promote({"self", "max"});
  const Values v = operands(e, dtype, {"self", "max"});
  return {e.b.minimum(v[0], v[1])};
}

Values where(Emit& e) {
  const DType dtype = e.promote({"self", "other"});
  Value condition = e.tensor("condition");
  e.check(condition.dtype() == DType::kPred || condition.dtype() == DType::kU8,
          base::str("expected a condition of bool (or u8), found ", in_words(condition),
                    "; compare it with 0 first"));
  condition = to(e.b, condition, DType::kPred);
  const Values v = broadcast_together(e.b, {condition, e.operand("self", dtype), e.operand("other", dtype)});
  return {e.b.select(v[0], v[1], v[2])};
}

Values masked_fill(Emit& e) {
  Value x = e.tensor("self");
  Value mask = to(e.b, e.tensor("mask"), DType::kPred);
  const Value value = e.operand("value", x.dtype());
  e.check(value.rank() == 0,
          base::str("expected a value without dimensions, found ", in_words(value), "; use torch::where"));
  const Values v = broadcast_together(e.b, {mask, x, value});
  return {e.b.select(v[0], v[2], v[1])};
}

const Row kPointwiseRows[] = {
    {.name = "aten::abs", .emit = abs},
    {.name = "aten::acos", .emit = float_unary<acos>},
    {.name = "aten::acosh", .emit = float_unary<acosh>},
    {.name = "aten::add.Tensor", .emit = add, .constant_if_one = "alpha"},
    {.name = "aten::add.Scalar", .emit = add, .constant_if_one = "alpha"},
    {.name = "aten::addcdiv", .emit = addcdiv, .constant_if_one = "value"},
    {.name = "aten::addcmul", .emit = addcmul, .constant_if_one = "value"},
    {.name = "aten::angle", .emit = angle_of},
    {.name = "aten::asin", .emit = float_unary<asin>},
    {.name = "aten::asinh", .emit = float_unary<asinh>},
    {.name = "aten::atan", .emit = float_unary<atan>},
    {.name = "aten::atan2", .emit = float_binary<angle_of_point>},
    {.name = "aten::atanh", .emit = float_unary<atanh>},
    {.name = "aten::bitwise_and.Tensor", .emit = binary<&Builder::and_>},
    {.name = "aten::bitwise_left_shift.Tensor", .emit = binary<&Builder::shift_left>},
    {.name = "aten::bitwise_not", .emit = bitwise_not},
    {.name = "aten::bitwise_or.Tensor", .emit = binary<&Builder::or_>},
    {.name = "aten::bitwise_right_shift.Tensor", .emit = binary<shift_right>},
    {.name = "aten::bitwise_xor.Tensor", .emit = binary<&Builder::xor_>},
    {.name = "aten::__lshift__.Scalar", .emit = binary<&Builder::shift_left>},
    {.name = "aten::__lshift__.Tensor", .emit = binary<&Builder::shift_left>},
    {.name = "aten::__rshift__.Scalar", .emit = binary<shift_right>},
    {.name = "aten::__rshift__.Tensor", .emit = binary<shift_right>},
    {.name = "aten::ceil", .emit = round_to_whole<&Builder::ceil>},
    {.name = "aten::clamp", .emit = clamp},
    {.name = "aten::clamp.Tensor", .emit = clamp},
    {.name = "aten::clamp_max", .emit = clamp_max},
    {.name = "aten::clamp_max.Tensor", .emit = clamp_max},
    {.name = "aten::clamp_min", .emit = clamp_min},
    {.name = "aten::clamp_min.Tensor", .emit = clamp_min},
    {.name = "aten::copysign.Tensor", .emit = float_binary<copysign>},
    {.name = "aten::cos", .emit = float_unary<by_type<&Builder::cosine, special::complex_cos>>},
    {.name = "aten::cosh", .emit = float_unary<cosh>},
    {.name = "aten::digamma", .emit = float_unary<digamma>},
    {.name = "aten::div.Tensor", .emit = float_binary<divide>},
    {.name = "aten::div.Tensor_mode", .emit = div_mode},
    {.name = "aten::div.Scalar", .emit = float_binary<divide>},
    {.name = "aten::div.Scalar_mode", .emit = div_mode},
    {.name = "aten::erf", .emit = float_unary<erf>},
    {.name = "aten::erfc", .emit = float_unary<erfc>},
    {.name = "aten::erfinv", .emit = float_unary<erfinv>},
    {.name = "aten::exp", .emit = float_unary<&Builder::exp>},
    {.name = "aten::exp2", .emit = float_unary<exp2>},
    {.name = "aten::expm1", .emit = float_unary<by_type<&Builder::expm1, special::complex_expm1>>},
    {.name = "aten::floor", .emit = round_to_whole<&Builder::floor>},
    {.name = "aten::floor_divide", .emit = division<floor_quotient>},
    {.name = "aten::fmax", .emit = binary<fmax>},
    {.name = "aten::fmin", .emit = binary<fmin>},
    {.name = "aten::fmod.Tensor", .emit = division<&Builder::remainder>},
    {.name = "aten::frac", .emit = frac},
    {.name = "aten::gcd", .emit = special::gcd},
    {.name = "aten::heaviside", .emit = heaviside},
    {.name = "aten::hypot", .emit = binary<special::hypotenuse>},
    {.name = "aten::i0", .emit = special::bessel_i0},
    {.name = "aten::igamma", .emit = special::incomplete_gamma_lower},
    {.name = "aten::igammac", .emit = special::incomplete_gamma_upper},
    {.name = "aten::lcm", .emit = special::lcm},
    {.name = "aten::lerp.Scalar", .emit = lerp_by_number},
    {.name = "aten::lerp.Tensor", .emit = lerp},
    {.name = "aten::lgamma", .emit = float_unary<lgamma>},
    {.name = "aten::log", .emit = float_unary<logarithm>},
    {.name = "aten::log10", .emit = float_unary<log10>},
    {.name = "aten::log1p", .emit = float_unary<by_type<&Builder::log1p, special::complex_log1p>>},
    {.name = "aten::log2", .emit = float_unary<log2>},
    {.name = "aten::logaddexp", .emit = float_binary<logaddexp>},
    {.name = "aten::logaddexp2", .emit = float_binary<logaddexp2>},
    {.name = "aten::logit", .emit = logit, .constants = "eps"},
    {.name = "aten::masked_fill.Scalar", .emit = masked_fill},
    {.name = "aten::masked_fill.Tensor", .emit = masked_fill},
    {.name = "aten::maximum", .emit = binary<&Builder::maximum>},
    {.name = "aten::minimum", .emit = binary<&Builder::minimum>},
    {.name = "aten::mul.Tensor", .emit = binary<&Builder::multiply>},
    {.name = "aten::mul.Scalar", .emit = binary<&Builder::multiply>},
    {.name = "aten::nan_to_num", .emit = nan_to_num},
    {.name = "aten::neg", .emit = neg},
    {.name = "aten::nextafter", .emit = special::next_after},
    {.name = "aten::polygamma", .emit = polygamma},
    {.name = "aten::pow.Scalar", .emit = pow},
    {.name = "aten::pow.Tensor_Scalar", .emit = pow_tensor_scalar, .constants = "exponent"},
    {.name = "aten::pow.Tensor_Tensor", .emit = pow},
    {.name = "aten::reciprocal", .emit = float_unary<reciprocal>},
    {.name = "aten::remainder.Scalar_Tensor", .emit = division<modulo>},
    {.name = "aten::remainder.Tensor", .emit = division<modulo>},
    {.name = "aten::round", .emit = round_to_whole<&Builder::round_even>},
    {.name = "aten::round.decimals", .emit = round_decimals},
    {.name = "aten::rsqrt", .emit = float_unary<inverse_square_root>},
    {.name = "aten::rsub.Scalar", .emit = rsub, .constant_if_one = "alpha"},
    {.name = "aten::rsub.Tensor", .emit = rsub, .constant_if_one = "alpha"},
    {.name = "aten::sgn", .emit = sign},
    {.name = "aten::sigmoid", .emit = float_unary<&Builder::logistic>},
    {.name = "aten::sign", .emit = sign},
    {.name = "aten::signbit", .emit = signbit},
    {.name = "aten::sin", .emit = float_unary<by_type<&Builder::sine, special::complex_sin>>},
    {.name = "aten::sinc", .emit = float_unary<sinc>},
    {.name = "aten::sinh", .emit = float_unary<sinh>},
    {.name = "aten::special_bessel_j0", .emit = special::bessel_j0},
    {.name = "aten::special_bessel_j1", .emit = special::bessel_j1},
    {.name = "aten::special_bessel_y0", .emit = special::bessel_y0},
    {.name = "aten::special_bessel_y1", .emit = special::bessel_y1},
    {.name = "aten::special_entr", .emit = float_unary<entropy>},
    {.name = "aten::special_erfcx", .emit = special::scaled_complementary_error},
    {.name = "aten::special_i0e", .emit = special::bessel_i0e},
    {.name = "aten::special_i1", .emit = special::bessel_i1},
    {.name = "aten::special_i1e", .emit = special::bessel_i1e},
    {.name = "aten::special_log_ndtr", .emit = special::log_normal_integral},
    {.name = "aten::special_modified_bessel_i0", .emit = special::bessel_i0},
    {.name = "aten::special_modified_bessel_i1", .emit = special::bessel_i1},
    {.name = "aten::special_modified_bessel_k0", .emit = special::bessel_k0},
    {.name = "aten::special_modified_bessel_k1", .emit = special::bessel_k1},
    {.name = "aten::special_ndtri", .emit = special::inverse_normal_integral},
    {.name = "aten::special_scaled_modified_bessel_k0", .emit = special::scaled_bessel_k0},
    {.name = "aten::special_scaled_modified_bessel_k1", .emit = special::scaled_bessel_k1},
    {.name = "aten::special_spherical_bessel_j0", .emit = special::spherical_bessel_j0},
    {.name = "aten::special_xlog1py", .emit = float_binary<xlog1py>},
    {.name = "aten::special_zeta", .emit = float_binary<zeta>},
    {.name = "aten::sqrt", .emit = float_unary<square_root>},
    {.name = "aten::sub.Scalar", .emit = sub, .constant_if_one = "alpha"},
    {.name = "aten::sub.Tensor", .emit = sub, .constant_if_one = "alpha"},
    {.name = "aten::tan", .emit = float_unary<tan>},
    {.name = "aten::tanh", .emit = float_unary<&Builder::tanh>},
    {.name = "aten::trunc", .emit = trunc},
    {.name = "aten::where.self", .emit = where},
    {.name = "aten::xlogy.Tensor", .emit = float_binary<xlogy>},
};

}  // namespace

std::span<const Row> pointwise_rows() { return kPointwiseRows; }

}  // namespace sluice::ops
