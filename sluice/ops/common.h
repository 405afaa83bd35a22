// What the families of operations share: compute types, broadcasting of arguments, small element-wise
// formulas.
#pragma once

#include <functional>
#include <initializer_list>

#include "sluice/ops/row.h"

namespace sluice::ops {

// The element type in which PyTorch computes: f32 for bf16 and f16, else the type itself.
DType compute_type(DType dtype);
// The type of a sum: 64-bit integers for integers and bool.
DType sum_type(DType dtype);

// convert, or x itself when it has this element type already.
Value to(Builder& b, Value x, DType dtype);
// A constant of x's type.
Value number_like(Builder& b, double number, Value x);
Value zeros(Builder& b, const Type& type);

// The named arguments with this element type, broadcast to their common dims.
Values operands(Emit& e, DType dtype, std::initializer_list<std::string_view> names);
// Values broadcast to their common dims.
Values broadcast_together(Builder& b, const Values& values);

// Predicates with the dims of x. Integers are never NaN.
Value is_nan(Builder& b, Value x);
Value is_less(Builder& b, Value x, double number);
Value is_equal(Builder& b, Value x, double number);
// True for a set sign bit (also of -0.0).
Value sign_bit(Builder& b, Value x);
Value truncate(Builder& b, Value x);  // towards zero; x a float
// min(max(x, 0) …) and so on with constants.
Value clamp_between(Builder& b, Value x, double low, double high);
// The largest finite and the smallest normal number of an element type.
double largest_finite(DType dtype);
double smallest_normal(DType dtype);
// The error function; ±1 where the nearest number of x's type is that.
Value erf(Builder& b, Value x);
// (sum of |x|^p over dims)^(1/p), in x's type, a compute type; p may be 0 (which counts) or ±infinity.
Value p_norm(Builder& b, Value x, double p, const Dims& dims);

// The mean over dims, without these, and x - mean. Means are taken of the distances from the first element,
// so x - mean keeps its digits where the mean is large, and is 0 where all elements are equal.
struct Centred {
  Value mean, distances;
};
Centred centre(Builder& b, Value x, const Dims& dims);

// 0 … rank - 1.
Dims all_dims(const Value& x);

// For k = 0 … count - 1: state = step(k, state), as one loop of the program. k is a 0-d s32.
using Step = std::function<Values(Builder&, Value k, const Values& state)>;
Values repeat(Builder& b, int64_t count, const Values& state, const Step& step);

// Combines along `dim` from its start: result[i] = x[0] ∘ … ∘ x[i]. `fill` holds the neutral element of each
// operand; combine(earlier…, later…) -> combined…
using Combine = std::function<Values(Builder&, const Values& earlier, const Values& later)>;
Values scan(Builder& b, const Values& operands, const Values& fill, int64_t dim, const Combine& combine);

// The same operation applied to one float argument `self`, computed in the compute type; integers and bool
// become the default float. Fn: a member function of Builder, or a function of Builder& and Value.
template <auto Fn>
Values float_unary(Emit& e) {
  const DType dtype = e.promote_float({"self"});
  return {to(e.b, std::invoke(Fn, e.b, e.operand("self", compute_type(dtype))), dtype)};
}

// The same for two arguments `self` and `other` in their common type.
template <auto Fn>
Values binary(Emit& e) {
  const DType dtype = e.promote({"self", "other"});
  const Values v = operands(e, compute_type(dtype), {"self", "other"});
  return {to(e.b, std::invoke(Fn, e.b, v[0], v[1]), dtype)};
}

template <auto Fn>
Values float_binary(Emit& e) {
  const DType dtype = e.promote_float({"self", "other"});
  const Values v = operands(e, compute_type(dtype), {"self", "other"});
  return {to(e.b, std::invoke(Fn, e.b, v[0], v[1]), dtype)};
}

}  // namespace sluice::ops
