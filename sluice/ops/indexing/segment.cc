// Reductions of runs ("segments") of rows, given by their lengths or by their offsets, and the gradient.
//
// The data is read as [batch * rows, columns]: the dims before `axis` are a batch, the dims after it columns.
// Each row has the number of its segment; rows without a segment are dropped.
#include <cmath>
#include <limits>

#include "sluice/base/text/join.h"
#include "sluice/ops/indexing/index.h"
#include "sluice/ops/indexing/indexing.h"

namespace sluice::ops::index {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Segments {
  int64_t batch = 1, segments = 0, rows = 0, columns = 1;
  Value lengths;  // s32 [batch * segments]
  Value place;    // s32 [batch * rows]: the row's segment; batch * segments without one
  Dims result;    // the reduced data's dims

  int64_t places() const { return batch * segments; }
};

// Returns where each segment ends, from lengths [batch, segments].
Value ends_of_lengths(Builder& b, Value lengths) {
  return scan(b, {lengths}, {b.splat(0, Type{lengths.dtype(), {}})}, 1,
              [](Builder& body, const Values& earlier, const Values& later) {
                return Values{body.add(earlier[0], later[0])};
              })[0];
}

// Returns each row's segment. begins and ends are [batch, segments].
Value places_of_rows(Builder& b, const Segments& s, Value begins, Value ends) {
  const Dims dims = {s.batch, s.rows, s.segments};
  const Value row = positions(b, dims, 1);
  const auto along = [&](Value v) { return b.broadcast_in_dim(v, dims, {0, 2}); };
  const Value inside =
      b.and_(b.compare(row, along(begins), Compare::kGe), b.compare(row, along(ends), Compare::kLt));
  const Value none = b.splat(s.places(), row.type());
  const Value number =
      b.add(b.multiply(positions(b, dims, 0), b.splat(s.segments, row.type())), positions(b, dims, 2));
  return b.reshape(b.reduce_min(b.select(inside, number, none), {2}), {s.batch * s.rows});
}

Segments read_segments(Emit& e) {
  Builder& b = e.b;
  const Value data = e.tensor("data");
  e.check(stablehlo::is_float(data.dtype()) && data.rank() > 0,
          base::str("expected a float tensor of at least one dimension, found ", in_words(data)));
  e.check(!e.has("indices"), "expected 'lengths' or 'offsets', found 'indices', which are not supported");
  e.check(e.has("lengths") || e.has("offsets"), "expected 'lengths' or 'offsets', found neither");
  const bool by_length = e.has("lengths");
  const Value given = e.tensor(by_length ? "lengths" : "offsets");
  const int64_t axis = wrap_dim(e.integer("axis"), data.rank());
  e.check(stablehlo::is_integer(given.dtype()) && given.rank() == axis + 1,
          base::str("expected integer ", by_length ? "lengths" : "offsets", " of ", axis + 1,
                    " dimensions for axis ", axis, ", found ", in_words(given)));
  Segments s;
  for (int64_t d = 0; d < data.rank(); ++d) {
    e.check(d >= axis || given.dim(d) == data.dim(d), base::str("expected the same batch dimensions, found ",
                                                                in_words(given), " for ", in_words(data)));
    if (d < axis) s.batch *= data.dim(d);
    if (d > axis) s.columns *= data.dim(d);
  }
  s.rows = data.dim(axis);
  s.segments = given.dim(axis) - (by_length ? 0 : 1);
  e.check(s.segments >= 0, "expected at least one offset");
  s.result = data.dims();
  s.result[static_cast<size_t>(axis)] = s.segments;
  Value table = b.reshape(narrow_index(b, given, std::max(s.rows, s.places())), {s.batch, given.dim(axis)});
  Value begins, ends;
  if (by_length) {
    ends = ends_of_lengths(b, table);
    begins = b.subtract(ends, table);
  } else {
    begins = b.slice_dim(table, 1, 0, s.segments);
    ends = b.slice_dim(table, 1, 1, s.segments + 1);
  }
  s.lengths = b.reshape(b.subtract(ends, begins), {s.places()});
  s.place = places_of_rows(b, s, begins, ends);
  return s;
}

Value flat_rows(Builder& b, Value x, int64_t rows, int64_t columns, DType compute) {
  return b.reshape(to(b, x, compute), {rows, columns});
}

// Repeats x, one number for each segment, as [segments, columns].
Value for_columns(Builder& b, Value x, const Segments& s, DType dtype) {
  return b.broadcast_in_dim(to(b, x, dtype), {s.places(), s.columns}, {0});
}

double start_of(Emit& e) {
  if (e.has("initial")) return e.number("initial");
  const std::string_view reduce = e.text("reduce");
  if (reduce == "max") return -INFINITY;
  if (reduce == "min") return INFINITY;
  return reduce == "prod" ? 1 : 0;
}

stablehlo::Region body_of(Emit& e) {
  const std::string_view reduce = e.text("reduce");
  if (reduce == "max") return larger_of_update();
  if (reduce == "min") return smaller_of_update();
  if (reduce == "prod") return multiply_update();
  e.check(reduce == "sum" || reduce == "mean",
          base::str("expected 'sum', 'mean', 'max', 'min' or 'prod', found '", reduce, "'"));
  return add_update();
}

}  // namespace

Values segment_reduce(Emit& e) {
  Builder& b = e.b;
  const stablehlo::Region body = body_of(e);
  const Segments s = read_segments(e);
  const DType dtype = e.tensor("data").dtype(), compute = compute_type(dtype);
  const Value rows = flat_rows(b, e.tensor("data"), s.batch * s.rows, s.columns, compute);
  const Value start = b.splat(start_of(e), Type{compute, {s.places(), s.columns}});
  Value result = scatter_slices(b, start, 0, s.place, rows, body);
  if (e.text("reduce") == "mean") {
    const Value length = for_columns(b, s.lengths, s, compute), empty = is_equal(b, length, 0);
    const Value of_nothing = e.has("initial") ? result : number_like(b, kNaN, result);
    result = b.select(empty, of_nothing, b.divide(result, length));
  }
  return {b.reshape(to(b, result, dtype), s.result)};
}

namespace {

// Returns the gradient of a maximum or minimum; rows that equal the extreme share it.
Value extreme_gradient(Builder& b, const Segments& s, Value grad, Value rows, Value of_segment) {
  const Value is_it = b.or_(b.compare(rows, of_segment, Compare::kEq), is_nan(b, rows));
  const Value ones = to(b, is_it, rows.dtype());
  const Value count = scatter_slices(b, zeros(b, Type{rows.dtype(), {s.places(), s.columns}}), 0, s.place,
                                     ones, add_update());
  return b.select(is_it, b.divide(grad, take_along(b, count, 0, s.place)), zeros(b, rows.type()));
}

// Returns the gradient of a product: the product of the other rows. For zeros and NaNs it is computed without
// a division.
Value product_gradient(Emit& e, const Segments& s, Value grad, Value rows, Value of_segment) {
  Builder& b = e.b;
  const Type table{rows.dtype(), {s.places(), s.columns}};
  const Value zero = is_equal(b, rows, 0), nan = is_nan(b, rows), special = b.or_(zero, nan);
  const auto into = [&](Value start, Value x, const stablehlo::Region& body) {
    return take_along(b, scatter_slices(b, start, 0, s.place, x, body), 0, s.place);
  };
  const auto others = [&](Value is) {  // the number of other rows of the segment that are `is`
    return b.subtract(into(zeros(b, table), to(b, is, rows.dtype()), add_update()), to(b, is, rows.dtype()));
  };
  const Value rest =
      into(b.splat(start_of(e), table), b.select(special, number_like(b, 1, rows), rows), multiply_update());
  Value product =
      b.select(b.compare(others(zero), zeros(b, rows.type()), Compare::kGt), zeros(b, rows.type()), rest);
  product = b.select(b.compare(others(nan), zeros(b, rows.type()), Compare::kGt), number_like(b, kNaN, rows),
                     product);
  return b.multiply(grad, b.select(special, product, b.divide(of_segment, rows)));
}

}  // namespace

Values segment_reduce_backward(Emit& e) {
  Builder& b = e.b;
  body_of(e);
  const Segments s = read_segments(e);
  const Value data = e.tensor("data");
  const DType compute = compute_type(data.dtype());
  if (data.type().numel() == 0 || s.places() == 0) return {zeros(b, data.type())};
  const Value rows = flat_rows(b, data, s.batch * s.rows, s.columns, compute);
  const auto spread = [&](Value of_segments) { return take_along(b, of_segments, 0, s.place); };
  Value grad = flat_rows(b, e.tensor("grad"), s.places(), s.columns, compute);
  const std::string_view reduce = e.text("reduce");
  if (reduce == "mean") grad = b.divide(grad, for_columns(b, s.lengths, s, compute));
  grad = spread(grad);
  const Value result = flat_rows(b, e.tensor("output"), s.places(), s.columns, compute);
  if (reduce == "max" || reduce == "min") grad = extreme_gradient(b, s, grad, rows, spread(result));
  if (reduce == "prod") grad = product_gradient(e, s, grad, rows, spread(result));
  const Value counted = b.compare(s.place, b.splat(s.places(), s.place.type()), Compare::kLt);
  grad = b.select(b.broadcast_in_dim(counted, rows.dims(), {0}), grad, zeros(b, rows.type()));
  return {b.reshape(to(b, grad, data.dtype()), data.dims())};
}

}  // namespace sluice::ops::index
