// Distances between the rows of matrices (cdist, pdist) and their gradients: p-norms of differences, computed
// in f32 for bf16 and f16. The differences are not a tensor in memory: the compiler makes them while it sums.
#include <cmath>

#include "sluice/base/text/join.h"
#include "sluice/ops/indexing/indexing.h"

namespace sluice::ops {
namespace {

double read_p(Emit& e) {
  const double p = e.number("p");
  e.check(p >= 0, base::str("expected p >= 0, found ", p));
  return p;
}

// Returns the p-norm along the last dimension; 0 if that has no elements.
Value norm(Builder& b, Value difference, double p) {
  Dims kept = difference.dims();
  kept.pop_back();
  if (difference.type().numel() == 0) return zeros(b, Type{difference.dtype(), kept});
  return p_norm(b, difference, p, {difference.rank() - 1});
}

// Returns the derivative of that norm by each difference; 0 if the distance is 0. `distance` is the norm,
// with the differences' dims.
Value norm_derivative(Builder& b, Value difference, Value distance, double p) {
  const Value size = b.abs(difference), zero = zeros(b, size.type()), sign = b.sign(difference);
  if (p == 0) return zero;
  if (p == 1) return sign;
  // A NaN distance equals no element's size.
  if (std::isinf(p))
    return b.select(is_nan(b, distance), distance,
                    b.select(b.compare(size, distance, Compare::kEq), sign, zero));
  Value slope = b.divide(difference, distance), none = is_equal(b, distance, 0);
  if (p != 2) {
    const Value exponent = number_like(b, p - 1, size);
    slope = b.divide(b.multiply(sign, b.power(size, exponent)), b.power(distance, exponent));
  }
  if (p < 1) none = b.or_(none, is_equal(b, difference, 0));
  return b.select(none, zero, slope);
}

// Returns the differences [batch…, P, R, M] of [batch…, P, M] and [batch…, R, M].
Value differences(Emit& e, Value x1, Value x2) {
  Builder& b = e.b;
  e.check(x1.rank() >= 2 && x2.rank() >= 2 && x1.dim(x1.rank() - 1) == x2.dim(x2.rank() - 1),
          base::str("expected 'x1' [..., P, M] and 'x2' [..., R, M], found ", in_words(x1), " and ",
                    in_words(x2)));
  const auto with_dim = [&](Value x, int64_t before_last) {
    Dims dims = x.dims();
    dims.insert(dims.end() - before_last, 1);
    return b.reshape(x, dims);
  };
  const Values v = broadcast_together(b, {with_dim(x1, 1), with_dim(x2, 2)});
  return b.subtract(v[0], v[1]);
}

// Repeats x, [dims…], as [dims…, size].
Value along_last(Builder& b, Value x, int64_t size) {
  Dims dims = x.dims(), kept;
  for (int64_t d = 0; d < x.rank(); ++d) kept.push_back(d);
  dims.push_back(size);
  return b.broadcast_in_dim(x, dims, kept);
}

// Turns grad, the gradient of all distances, into the gradient of the rows of x1.
Value first_gradient(Builder& b, Value grad, Value difference, Value distance, double p) {
  const int64_t size = difference.dim(difference.rank() - 1);
  const Value slope = norm_derivative(b, difference, along_last(b, distance, size), p);
  return b.reduce_sum(b.multiply(along_last(b, grad, size), slope), {difference.rank() - 2});
}

Values cdist(Emit& e) {
  const DType dtype = e.promote({"x1", "x2"}), compute = compute_type(dtype);
  e.check(stablehlo::is_float(dtype), "expected float tensors");
  return {to(e.b, norm(e.b, differences(e, e.operand("x1", compute), e.operand("x2", compute)), read_p(e)),
             dtype)};
}

Values cdist_backward(Emit& e) {
  Builder& b = e.b;
  const DType dtype = e.promote({"x1", "x2"}), compute = compute_type(dtype);
  const Value difference = differences(e, e.operand("x1", compute), e.operand("x2", compute));
  Dims pairs = difference.dims();
  pairs.pop_back();
  const Value grad = e.operand("grad", compute), distance = e.operand("cdist", compute);
  e.check(grad.dims() == pairs && distance.dims() == pairs,
          base::str("expected 'grad' and 'cdist' of shape [", base::join(pairs, ", "), "], found ",
                    in_words(grad), " and ", in_words(distance)));
  return {to(b, first_gradient(b, grad, difference, distance, read_p(e)), dtype)};
}

// ---- The distances between the rows i < j of one matrix, row after row ----

// Returns for each (i, j) of [n, n] the place of that pair's distance, s32; one past the end for i >= j.
Value places_of_pairs(Builder& b, int64_t n) {
  const Value i = positions(b, {n, n}, 0), j = positions(b, {n, n}, 1);
  const auto whole = [&](int64_t number) { return b.splat(number, i.type()); };
  // i (2n - i - 1) / 2 pairs precede row i's pairs.
  const Value before = b.divide(b.multiply(i, b.subtract(whole(2 * n - 1), i)), whole(2));
  const Value place = b.add(before, b.subtract(b.subtract(j, i), whole(1)));
  return b.select(b.compare(i, j, Compare::kLt), place, whole(n * (n - 1) / 2));
}

Value read_rows(Emit& e) {
  const Value self = e.tensor("self");
  e.check(self.rank() == 2 && stablehlo::is_float(self.dtype()),
          base::str("expected a float matrix, found ", in_words(self)));
  return to(e.b, self, compute_type(self.dtype()));
}

Values pdist(Emit& e) {
  Builder& b = e.b;
  const Value x = read_rows(e);
  const int64_t n = x.dim(0), pairs = n < 2 ? 0 : n * (n - 1) / 2;
  const Value none = zeros(b, Type{x.dtype(), {pairs}});
  Value result = none;
  if (pairs > 0) {
    const Value all = b.reshape(norm(b, differences(e, x, x), read_p(e)), {n * n});
    const Value places = narrow_index(b, b.reshape(places_of_pairs(b, n), {n * n}), n * n);
    result = scatter_slices(b, none, 0, places, all, replace_by_update());
  }
  return {to(b, result, e.tensor("self").dtype())};
}

Values pdist_backward(Emit& e) {
  Builder& b = e.b;
  const Value x = read_rows(e);
  const int64_t n = x.dim(0);
  if (n < 2 || x.dim(1) == 0) return {zeros(b, e.tensor("self").type())};
  const Value places = narrow_index(b, places_of_pairs(b, n), n * n);
  // [n, n], symmetric, 0 on the diagonal.
  const auto square = [&](std::string_view name) {
    const Value given = e.operand(name, x.dtype());
    e.check(given.dims() == Dims{n * (n - 1) / 2},
            base::str("expected '", name, "' of ", n * (n - 1) / 2, " distances, found ", in_words(given)));
    const Value upper = take_along(b, b.pad(given, b.splat(0, Type{x.dtype(), {}}), {0}, {1}), 0, places);
    return b.add(upper, b.transpose(upper, {1, 0}));
  };
  const Value grad = first_gradient(b, square("grad"), differences(e, x, x), square("pdist"), read_p(e));
  return {to(b, grad, e.tensor("self").dtype())};
}

constexpr Row kDistanceRows[] = {
    {.name = "aten::_cdist_forward", .emit = cdist, .constants = "p"},
    {.name = "aten::_cdist_backward", .emit = cdist_backward, .constants = "p"},
    {.name = "aten::_pdist_forward", .emit = pdist, .constants = "p"},
    {.name = "aten::_pdist_backward", .emit = pdist_backward, .constants = "p"},
};

}  // namespace

std::span<const Row> distance_rows() { return kDistanceRows; }

}  // namespace sluice::ops
