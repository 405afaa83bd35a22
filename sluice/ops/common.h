// Helpers that the families of operations share: compute types, broadcasting of arguments, small element-wise
// formulas.
#pragma once

#include <functional>
#include <initializer_list>

#include "sluice/ops/row.h"

namespace sluice::ops {

// Returns the element type in which PyTorch computes: f32 for bf16 and f16, else the type itself.
DType compute_type(DType dtype);
// Returns the type of a sum: 64-bit integers for integers and bool.
DType sum_type(DType dtype);

// Converts x to an element type; returns x itself if it already has that type.
Value to(Builder& b, Value x, DType dtype);
// Returns a constant of x's type.
Value number_like(Builder& b, double number, Value x);
Value zeros(Builder& b, const Type& type);

// Returns the named arguments with this element type, broadcast to their common dims.
Values operands(Emit& e, DType dtype, std::initializer_list<std::string_view> names);
// Returns values broadcast to their common dims.
Values broadcast_together(Builder& b, const Values& values);

// Return predicates with the dims of x. Integers are never NaN.
Value is_nan(Builder& b, Value x);
Value is_less(Builder& b, Value x, double number);
Value is_equal(Builder& b, Value x, double number);
// Returns true for a set sign bit (including -0.0).
Value sign_bit(Builder& b, Value x);
Value truncate(Builder& b, Value x);  // towards zero; x a float
// Returns min(max(x, low), high).
Value clamp_between(Builder& b, Value x, double low, double high);
// Return the largest finite and the smallest normal number of an element type.
double largest_finite(DType dtype);
double smallest_normal(DType dtype);
// Returns the error function; ±1 if that is the nearest number of x's type.
Value erf(Builder& b, Value x);
// Returns (sum of |x|^p over dims)^(1/p), in x's type, a compute type; p may be 0 (which counts) or
// ±infinity.
Value p_norm(Builder& b, Value x, double p, const Dims& dims);

// The mean over dims, without these dims, and x - mean. Means are computed from the distances to the first
// element, so that x - mean keeps its digits if the mean is large, and is 0 if all elements are equal.
// The mean of elements with an infinity is NaN if the first one is infinite, as the mean of LibTorch's
// var_mean is; with `infinite` it is that infinity, as the mean of its normalizations is.
struct Centred {
  Value mean, distances;
};
Centred centre(Builder& b, Value x, const Dims& dims, bool infinite = false);

// Returns 0 … rank - 1.
Dims all_dims(const Value& x);

// Computes state = step(k, state) for k = 0 … count - 1, as one loop of the program. k is a 0-d s32.
using Step = std::function<Values(Builder&, Value k, const Values& state)>;
Values repeat(Builder& b, int64_t count, const Values& state, const Step& step);

// Combines along `dim` from its start: result[i] = x[0] ∘ … ∘ x[i]. `fill` holds the neutral element of each
// operand; combine(earlier…, later…) -> combined…
using Combine = std::function<Values(Builder&, const Values& earlier, const Values& later)>;
Values scan(Builder& b, const Values& operands, const Values& fill, int64_t dim, const Combine& combine);

// Returns the sums or the products of x along `dim` up to each element, or, with `from_end`, from each
// element on. Like scan(), but faster for many elements: a block's elements are combined one after the other.
enum class Running : uint8_t { kSum, kProduct };
Value running(Builder& b, Value x, int64_t dim, Running kind, bool from_end = false);

// Applies one operation to the float argument `self`, computed in the compute type; integers and bool become
// the default float. Fn: a member function of Builder, or a function of Builder& and Value.
template <auto Fn>
Values float_unary(Emit& e) {
  const DType dtype = e.promote_float({"self"});
  return {to(e.b, std::invoke(Fn, e.b, e.operand("self", compute_type(dtype))), dtype)};
}

// Applies one operation to the two arguments `self` and `other` in their common type.
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
