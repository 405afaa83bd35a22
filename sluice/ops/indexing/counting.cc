// Histograms, and the positions of the elements that are not 0.
#include "sluice/base/text/strings.h"
#include "sluice/ops/indexing/index.h"
#include "sluice/ops/indexing/indexing.h"

namespace sluice::ops::index {
namespace {

// Returns x[0] + … + x[i], along the only dimension.
Value sums(Builder& b, Value x) {
  return scan(b, {x}, {b.splat(0, Type{x.dtype(), {}})}, 0,
              [](Builder& body, const Values& earlier, const Values& later) {
                return Values{body.add(earlier[0], later[0])};
              })[0];
}

}  // namespace

// Counts the elements in each of `bins` intervals of one width between min and max; the last one is closed,
// and elements outside are left out. If min equals max, the limits are the smallest and the largest element.
Values histc(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self");
  const int64_t bins = e.integer("bins"), count = self.type().numel();
  const double low = e.number("min"), high = e.number("max");
  e.check(stablehlo::is_float(self.dtype()), base::str("expected a float tensor, found ", in_words(self)));
  e.check(bins > 0, base::str("expected bins above 0, found ", bins));
  e.check(low <= high, base::str("expected max to be larger than min, found ", high, " and ", low));
  const DType compute = compute_type(self.dtype());
  const Value x = b.reshape(to(b, self, compute), {count}), none = zeros(b, Type{compute, {bins}});
  if (count == 0) return {to(b, none, self.dtype())};
  Value first = b.splat(low, Type{compute, {}}), last = b.splat(high, Type{compute, {}});
  if (low == high) {
    first = b.reduce_min(x, {0});
    last = b.reduce_max(x, {0});
    const Value flat = b.compare(first, last, Compare::kEq), one = number_like(b, 1, first);
    first = b.select(flat, b.subtract(first, one), first);
    last = b.select(flat, b.add(last, one), last);
  }
  const auto all = [&](Value v) { return b.broadcast(v, {count}); };
  const Value inside = b.and_(b.compare(x, all(first), Compare::kGe), b.compare(x, all(last), Compare::kLe));
  const Value scaled =
      b.divide(b.multiply(b.subtract(x, all(first)), b.splat(bins, x.type())), all(b.subtract(last, first)));
  const Value place =
      b.minimum(b.convert(scaled, DType::kS32), b.splat(bins - 1, Type{DType::kS32, {count}}));
  const Value index = b.select(inside, place, b.splat(bins, place.type()));
  return {to(b, scatter_slices(b, none, 0, index, number_like(b, 1, x), add_update()), self.dtype())};
}

namespace {

// Returns the bounds of equal bins: from `range`, or from the smallest to the largest element.
Value even_edges(Emit& e, Value x) {
  Builder& b = e.b;
  const int64_t bins = e.integer("bins");
  e.check(bins > 0, base::str("expected bins above 0, found ", bins));
  Value first = b.splat(0, Type{x.dtype(), {}}), last = number_like(b, 1, first);
  if (const std::vector<double>& range = e.doubles("range"); !range.empty()) {
    e.check(
        range.size() == 2 && range[0] <= range[1],
        base::str("expected a range of two numbers, the smaller one first, found ", base::join(range, ", ")));
    first = number_like(b, range[0], first);
    last = number_like(b, range[1], first);
  } else if (x.dim(0) > 0) {
    first = b.reduce_min(x, {0});
    last = b.reduce_max(x, {0});
  }
  const Value flat = b.compare(first, last, Compare::kEq), half = number_like(b, 0.5, first);
  first = b.select(flat, b.subtract(first, half), first);
  last = b.select(flat, b.add(last, half), last);
  // Computed from both ends, as linspace does, so that the last one is exact.
  const Type type{x.dtype(), {bins + 1}};
  const auto all = [&](Value v) { return b.broadcast(v, type.dims); };
  const Value step = all(b.divide(b.subtract(last, first), b.splat(bins, first.type()))),
              place = b.iota(type, 0);
  const Value from_end = b.subtract(b.splat(bins, type), place);
  return b.select(is_less(b, place, static_cast<double>((bins + 1) / 2)),
                  b.add(all(first), b.multiply(step, place)),
                  b.subtract(all(last), b.multiply(step, from_end)));
}

}  // namespace

// An element's bin is the number of edges up to it, minus one; the last bin includes its upper edge. Elements
// outside are left out.
Values histogram(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self");
  const bool given = e.op().find("bins_tensor") != std::string_view::npos;
  e.check(stablehlo::is_float(self.dtype()), base::str("expected a float tensor, found ", in_words(self)));
  const DType compute = compute_type(self.dtype());
  const int64_t count = self.type().numel();
  const Value x = b.reshape(to(b, self, compute), {count});
  if (given) {
    const Value bins = e.tensor("bins");
    e.check(bins.rank() == 1 && bins.dim(0) > 1 && bins.dtype() == self.dtype(),
            base::str("expected 'bins' to be two or more edges of the tensor's element type, found ",
                      in_words(bins)));
  }
  const Value edges = given ? to(b, e.tensor("bins"), compute) : even_edges(e, x);
  const int64_t bins = edges.dim(0) - 1;
  const Dims pairs = {count, bins + 1};
  const Value reached =
      b.compare(b.broadcast_in_dim(edges, pairs, {1}), b.broadcast_in_dim(x, pairs, {0}), Compare::kLe);
  const Value before = b.reduce_sum(to(b, reached, DType::kS32), {1});
  const auto edge = [&](int64_t i) {
    return b.broadcast(b.reshape(b.slice_dim(edges, 0, i, i + 1), {}), {count});
  };
  const Value inside = b.and_(b.compare(x, edge(0), Compare::kGe), b.compare(x, edge(bins), Compare::kLe));
  const Value place =
      b.minimum(b.subtract(before, b.splat(1, before.type())), b.splat(bins - 1, before.type()));
  Value weight = number_like(b, 1, x);
  if (const Value weights = e.tensor_or_empty("weight")) {
    e.check(weights.dims() == self.dims(),
            base::str("expected one weight for each element, found ", in_words(weights)));
    weight = b.reshape(to(b, weights, compute), {count});
  }
  Value counts = scatter_slices(b, zeros(b, Type{compute, {bins}}), 0,
                                b.select(inside, place, b.splat(bins, place.type())), weight, add_update());
  if (e.boolean("density")) {
    const Value widths = b.subtract(b.slice_dim(edges, 0, 1, bins + 1), b.slice_dim(edges, 0, 0, bins));
    counts = b.divide(b.divide(counts, b.broadcast(b.reduce_sum(counts, {0}), {bins})), widths);
  }
  return {to(b, counts, self.dtype()), to(b, edges, self.dtype())};
}

// Returns the positions of the first `size` elements that are not 0, then fill_value.
Values nonzero_static(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self");
  const int64_t size = e.integer("size"), fill = e.integer("fill_value"), count = self.type().numel();
  e.check(size >= 0, base::str("expected a size of at least 0, found ", size));
  const Type column{DType::kS32, {size}}, result{DType::kS64, {size, self.rank()}};
  if (result.numel() == 0 || count == 0) return {b.splat(fill, result)};
  const Value flat = b.reshape(self, {count});
  const Value found =
      self.dtype() == DType::kPred ? flat : b.compare(flat, zeros(b, flat.type()), Compare::kNe);
  const Value chosen = to(b, found, DType::kS32);
  const Value number = b.subtract(sums(b, chosen), chosen),
              place = b.select(found, number, b.splat(size, number.type()));
  Value position =
      scatter_slices(b, b.splat(-1, column), 0, place, positions(b, {count}, 0), replace_by_update());
  const Value none = is_less(b, position, 0);
  Values columns;
  for (int64_t d = self.rank(); d-- > 0;) {
    const Value dim = b.splat(self.dim(d), column);
    const Value of_dim = b.select(none, b.splat(fill, Type{DType::kS64, {size}}),
                                  to(b, b.remainder(position, dim), DType::kS64));
    columns.insert(columns.begin(), b.reshape(of_dim, {size, 1}));
    position = b.divide(position, dim);
  }
  return {columns.size() == 1 ? columns[0] : b.concatenate(columns, 1)};
}

}  // namespace sluice::ops::index
