// Sorting, and operations that follow from an order. NaN counts as the largest number, as in LibTorch. Sorts
// are always stable. A search in few boundaries compares with all of them, which needs no gathers.
#include <bit>
#include <utility>

#include "sluice/base/text/join.h"
#include "sluice/ops/indexing/index.h"
#include "sluice/ops/indexing/indexing.h"

namespace sluice::ops::index {
namespace {

struct Sorted {
  Value values, positions;  // positions: s32
};

stablehlo::Region comes_before(bool descending) {
  return [descending](Builder& b, std::span<const Value> v) -> Values {
    const Value first = descending ? v[1] : v[0], second = descending ? v[0] : v[1];
    Value before = b.compare(first, second, Compare::kLt);
    if (stablehlo::is_float(first.dtype()))
      before = b.or_(before, b.and_(b.not_(is_nan(b, first)), is_nan(b, second)));
    return {before};
  };
}

Sorted sort_along(Builder& b, Value x, int64_t dim, bool descending) {
  const Value where = positions(b, x.dims(), dim);
  const Values sorted = b.sort(std::vector{x, where}, dim, /*stable=*/true, comes_before(descending));
  return {sorted[0], sorted[1]};
}

// Returns the first k results of sort_along(). On a CPU a whole sort takes 20 times as long for 10 of 64 x
// 10,000 numbers.
Sorted first_along(Builder& b, Value x, int64_t dim, int64_t k, bool descending) {
  const DType dtype = x.dtype();
  const bool fits_f32 = dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
  if (!fits_f32 || k == 0 || x.type().numel() == 0) {
    const Sorted s = sort_along(b, x, dim, descending);
    return {b.slice_dim(s.values, dim, 0, k), b.slice_dim(s.positions, dim, 0, k)};
  }
  // The key has one bit pattern for zero and one for NaN, which is the largest number.
  constexpr int64_t kNan = 0x7fc00000, kNegativeNan = -0x400000;
  Value key = to(b, x, DType::kF32);
  const Value nan =
      b.bitcast_convert(b.splat(descending ? kNan : kNegativeNan, Type{DType::kS32, x.dims()}), DType::kF32);
  const Value zero = zeros(b, key.type()), is_zero = is_equal(b, key, 0), is_none = is_nan(b, key);
  if (!descending) key = b.negate(key);
  key = b.select(is_none, nan, b.select(is_zero, zero, key));
  const int64_t last = x.rank() - 1;
  const auto swapped = [&](Value v) {
    Dims order = all_dims(v);
    std::swap(order[static_cast<size_t>(dim)], order[static_cast<size_t>(last)]);
    return dim == last ? v : b.transpose(v, order);
  };
  const Value where = swapped(b.top_k(swapped(key), k)[1]);
  return {gather_elements(b, x, dim, where), where};
}

Value at_least_1d(Builder& b, Value x) { return x.rank() == 0 ? b.reshape(x, {1}) : x; }

// Returns values and positions (s64) with the dims of the result.
Values finish(Builder& b, Value values, Value where, const Dims& dims) {
  return {b.reshape(values, dims), b.reshape(to(b, where, DType::kS64), dims)};
}

Dims without_dim(const Dims& dims, int64_t dim, bool keep) {
  Dims result = dims;
  if (keep)
    result[static_cast<size_t>(dim)] = 1;
  else
    result.erase(result.begin() + dim);
  return result;
}

}  // namespace

Values sort(Emit& e) {
  const Value self = e.tensor("self"), x = at_least_1d(e.b, self);
  const Sorted s = sort_along(e.b, x, wrap_dim(e.integer("dim"), self.rank()), e.boolean("descending"));
  return finish(e.b, s.values, s.positions, self.dims());
}

Values topk(Emit& e) {
  const Value self = e.tensor("self"), x = at_least_1d(e.b, self);
  const int64_t dim = wrap_dim(e.integer("dim"), self.rank()), k = e.integer("k");
  e.check(k >= 0 && k <= x.dim(dim), base::str("expected k from 0 to ", x.dim(dim), ", found ", k));
  const Sorted s = first_along(e.b, x, dim, k, e.boolean("largest"));
  Dims dims = self.dims();
  if (self.rank() > 0) dims[static_cast<size_t>(dim)] = k;
  return finish(e.b, s.values, s.positions, dims);
}

Values kthvalue(Emit& e) {
  const Value self = e.tensor("self"), x = at_least_1d(e.b, self);
  const int64_t dim = wrap_dim(e.integer("dim"), self.rank()), k = e.integer("k");
  e.check(k >= 1 && k <= x.dim(dim), base::str("expected k from 1 to ", x.dim(dim), ", found ", k));
  const Sorted s = first_along(e.b, x, dim, k, false);
  const Dims dims = self.rank() == 0 ? Dims{} : without_dim(x.dims(), dim, e.boolean("keepdim"));
  return finish(e.b, e.b.slice_dim(s.values, dim, k - 1, k), e.b.slice_dim(s.positions, dim, k - 1, k), dims);
}

// Returns the lower of the two middle elements. `median` returns NaN if there is one, `nanmedian` ignores
// NaNs.
Values median(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self");
  const bool ignore_nan = e.op().find("nanmedian") != std::string_view::npos, whole = !e.has("dim");
  const Value x = whole ? b.reshape(self, {self.type().numel()}) : at_least_1d(b, self);
  const int64_t dim = whole ? 0 : wrap_dim(e.integer("dim"), self.rank()), size = x.dim(dim);
  e.check(size > 0, "expected a dimension that is not empty");
  const Sorted s = sort_along(b, x, dim, false);
  const Value nans = b.reduce_sum(to(b, is_nan(b, x), DType::kS32), {dim});
  const Value numbers = b.subtract(b.splat(size, nans.type()), nans);
  auto middle = [&](Value count) {
    return b.divide(b.maximum(b.subtract(count, number_like(b, 1, count)), number_like(b, 0, count)),
                    number_like(b, 2, count));
  };
  const Value rank = ignore_nan ? middle(numbers)
                                : b.select(is_less(b, numbers, static_cast<double>(size)), numbers,
                                           middle(b.splat(size, nans.type())));
  const Value where = b.reshape(rank, without_dim(x.dims(), dim, true));
  const Dims dims = whole || self.rank() == 0 ? Dims{} : without_dim(x.dims(), dim, e.boolean("keepdim"));
  Values results =
      finish(b, gather_elements(b, s.values, dim, where), gather_elements(b, s.positions, dim, where), dims);
  if (whole) results.resize(1);
  return results;
}

// Returns the most frequent value (the smallest if there are several) and its last position.
Values mode(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self"), x = at_least_1d(b, self);
  const int64_t dim = wrap_dim(e.integer("dim"), self.rank()), size = x.dim(dim);
  e.check(size > 0, "expected a dimension that is not empty");
  const Sorted s = sort_along(b, x, dim, false);
  // At the end of a run of equal values: its length. The run begins after the last change before it.
  const Value place = positions(b, x.dims(), dim);
  const auto neighbour = [&](int64_t by) {
    return gather_elements(
        b, s.values, dim,
        clamp_between(b, b.add(place, b.splat(by, place.type())), 0, static_cast<double>(size - 1)));
  };
  const auto differs_from = [&](Value other) { return b.compare(s.values, other, Compare::kNe); };
  const Value begins = b.or_(differs_from(neighbour(-1)), is_equal(b, place, 0));
  const Value ends = b.or_(differs_from(neighbour(1)), is_equal(b, place, static_cast<double>(size - 1)));
  const Values starts =
      scan(b, {b.select(begins, place, zeros(b, place.type()))}, {b.splat(0, Type{DType::kS32, {}})}, dim,
           [](Builder& body, const Values& earlier, const Values& later) {
             return Values{body.maximum(earlier[0], later[0])};
           });
  const Value length = b.select(ends, b.subtract(place, starts[0]), b.splat(-1, place.type()));
  const Value kept_longest = b.reshape(b.reduce_max(length, {dim}), without_dim(x.dims(), dim, true));
  const Value longest = b.compare(length, b.broadcast(kept_longest, x.dims()), Compare::kEq);
  const Value first = b.reshape(b.reduce_min(b.select(longest, place, b.splat(size, place.type())), {dim}),
                                without_dim(x.dims(), dim, true));
  const Dims dims = self.rank() == 0 ? Dims{} : without_dim(x.dims(), dim, e.boolean("keepdim"));
  return finish(b, gather_elements(b, s.values, dim, first), gather_elements(b, s.positions, dim, first),
                dims);
}

namespace {

// Returns for each element of `values` the number of boundaries (the last dim of `boundaries`) below it, or
// up to it. NaN comes after every boundary.
Value compared_with_all(Builder& b, Value boundaries, Value values, Compare reaches) {
  const int64_t last = boundaries.rank() - 1, count = boundaries.dim(last);
  Dims dims = values.dims(), kept, all;
  for (int64_t d = 0; d < values.rank(); ++d) kept.push_back(d);
  dims.push_back(count);
  if (boundaries.rank() == 1) {
    all = {values.rank()};
  } else {
    for (int64_t d = 0; d < last; ++d) all.push_back(d);
    all.push_back(values.rank());
  }
  const Value boundary = b.broadcast_in_dim(boundaries, dims, all),
              value = b.broadcast_in_dim(values, dims, kept);
  const Value reached = b.compare(boundary, value, reaches);
  return b.reduce_sum(to(b, b.not_(reached), DType::kS32), {values.rank()});
}

// Does the same by bisection: the number found so far grows by a power of two if the boundary there is below.
Value searched(Builder& b, Value boundaries, Value values, Compare reaches) {
  const Dims dims = values.dims();
  if (boundaries.rank() == 1) values = b.reshape(values, {values.type().numel()});
  const int64_t last = boundaries.rank() - 1, count = boundaries.dim(last);
  const Type type{DType::kS32, values.dims()};
  Value found = zeros(b, type);
  for (auto step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count))); step > 0; step /= 2) {
    const Value next = b.add(found, b.splat(step, type)), end = b.splat(count, type);
    const Value place = b.subtract(b.minimum(next, end), b.splat(1, type));
    const Value below = b.not_(b.compare(gather_elements(b, boundaries, last, place), values, reaches));
    found = b.select(b.and_(below, b.compare(next, end, Compare::kLe)), next, found);
  }
  return b.reshape(found, dims);
}

Values count_boundaries(Emit& e, Value boundaries, Value values, bool right) {
  constexpr int64_t kFew = 64;
  const Compare reaches = right ? Compare::kGt : Compare::kGe;
  const bool few = boundaries.dim(boundaries.rank() - 1) <= kFew;
  const Value before = (few ? compared_with_all : searched)(e.b, boundaries, values, reaches);
  return {to(e.b, before, e.boolean("out_int32") ? DType::kS32 : DType::kS64)};
}

}  // namespace

Values searchsorted(Emit& e) {
  Builder& b = e.b;
  const DType dtype = e.promote({"sorted_sequence", "self"});
  Value sequence = at_least_1d(b, e.tensor("sorted_sequence"));
  if (const Value sorter = e.tensor_or_empty("sorter"))
    sequence = gather_elements(b, sequence, sequence.rank() - 1,
                               narrow_index(b, sorter, sequence.dim(sequence.rank() - 1)));
  const Value values = e.operand("self", dtype);
  e.check(sequence.rank() == 1 || sequence.rank() == values.rank(),
          base::str("expected boundaries of one dimension or of the rank of the values, found ",
                    in_words(sequence), " and ", in_words(values)));
  return count_boundaries(e, to(b, sequence, dtype), values, e.boolean("right") || e.text("side") == "right");
}

Values bucketize(Emit& e) {
  const DType dtype = e.promote({"boundaries", "self"});
  return count_boundaries(e, to(e.b, e.tensor("boundaries"), dtype), e.operand("self", dtype),
                          e.boolean("right"));
}

Values isin(Emit& e) {
  Builder& b = e.b;
  const std::string_view elements = e.has("elements") ? "elements" : "element";
  const std::string_view tests = e.has("test_elements") ? "test_elements" : "test_element";
  const DType dtype = e.promote({elements, tests});
  const Value x = e.operand(elements, dtype);
  Value test = e.operand(tests, dtype);
  test = b.reshape(test, {test.type().numel()});
  Dims dims = x.dims(), kept;
  for (int64_t d = 0; d < x.rank(); ++d) kept.push_back(d);
  dims.push_back(test.dim(0));
  const Value equal =
      b.compare(b.broadcast_in_dim(x, dims, kept), b.broadcast_in_dim(test, dims, {x.rank()}), Compare::kEq);
  const Value found = b.reduce_or(equal, {x.rank()});
  return {e.boolean("invert") ? b.not_(found) : found};
}

}  // namespace sluice::ops::index
