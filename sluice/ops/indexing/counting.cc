// Histograms, and the positions of the elements that are not 0.
#include <span>
#include <vector>

#include "sluice/base/text/join.h"
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

// Returns the bounds of `bins` equal bins for x [count]: from `range`, or from the smallest to the largest
// element if it is empty.
Value even_edges(Emit& e, Value x, int64_t bins, std::span<const double> range) {
  Builder& b = e.b;
  e.check(bins > 0, base::str("expected bins above 0, found ", bins));
  Value first = b.splat(0, Type{x.dtype(), {}}), last = number_like(b, 1, first);
  if (!range.empty()) {
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

// Returns the bin of each element of x [count]: the number of edges up to it, minus one. The last bin
// includes its upper edge. Elements outside are in none: their bin is the number of bins.
Value bin_of(Builder& b, Value x, Value edges) {
  const int64_t count = x.dim(0), bins = edges.dim(0) - 1;
  const Dims pairs = {count, bins + 1};
  const Value reached =
      b.compare(b.broadcast_in_dim(edges, pairs, {1}), b.broadcast_in_dim(x, pairs, {0}), Compare::kLe);
  const Value before = b.reduce_sum(to(b, reached, DType::kS32), {1});
  const auto edge = [&](int64_t i) {
    return b.broadcast(b.reshape(b.slice_dim(edges, 0, i, i + 1), {}), {count});
  };
  const Value inside = b.and_(b.compare(x, edge(0), Compare::kGe), b.compare(x, edge(bins), Compare::kLe));
  const Value last = b.splat(bins, before.type());
  const Value place =
      b.minimum(b.subtract(before, b.splat(1, before.type())), b.splat(bins - 1, before.type()));
  return b.select(inside, place, last);
}

Value widths_of(Builder& b, Value edges) {
  const int64_t bins = edges.dim(0) - 1;
  return b.subtract(b.slice_dim(edges, 0, 1, bins + 1), b.slice_dim(edges, 0, 0, bins));
}

void check_edges(const Emit& e, Value edges, DType dtype) {
  e.check(edges.rank() == 1 && edges.dim(0) > 1 && edges.dtype() == dtype,
          base::str("expected 'bins' to be two or more edges of the tensor's element type, found ",
                    in_words(edges)));
}

// Returns the weights of elements with these dims, as one dimension: 1 each if the call gives none.
Value weights_of(Emit& e, const Dims& dims, DType compute) {
  Builder& b = e.b;
  const Value weights = e.tensor_or_empty("weight");
  if (!weights) return b.splat(1, Type{compute, {Type{compute, dims}.numel()}});
  e.check(weights.dims() == dims,
          base::str("expected one weight for each element, found ", in_words(weights)));
  return b.reshape(to(b, weights, compute), {weights.type().numel()});
}

}  // namespace

Values histogram(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self");
  const bool given = e.op().find("bins_tensor") != std::string_view::npos;
  e.check(stablehlo::is_float(self.dtype()), base::str("expected a float tensor, found ", in_words(self)));
  const DType compute = compute_type(self.dtype());
  const Value x = b.reshape(to(b, self, compute), {self.type().numel()});
  if (given) check_edges(e, e.tensor("bins"), self.dtype());
  const Value edges =
      given ? to(b, e.tensor("bins"), compute) : even_edges(e, x, e.integer("bins"), e.doubles("range"));
  const int64_t bins = edges.dim(0) - 1;
  Value counts = scatter_slices(b, zeros(b, Type{compute, {bins}}), 0, bin_of(b, x, edges),
                                weights_of(e, self.dims(), compute), add_update());
  if (e.boolean("density")) {
    const Value sum = b.broadcast(b.reduce_sum(counts, {0}), {bins});
    counts = b.divide(b.divide(counts, sum), widths_of(b, edges));
  }
  return {to(b, counts, self.dtype()), to(b, edges, self.dtype())};
}

// Counts points [..., D] in a grid of bins with D dimensions. A point with a coordinate outside is left out.
Values histogramdd(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self");
  e.check(stablehlo::is_float(self.dtype()) && self.rank() >= 2,
          base::str("expected a float tensor of two or more dimensions, found ", in_words(self)));
  const bool given = e.op().find("bin_tensors") != std::string_view::npos;
  const int64_t dimensions = self.dim(self.rank() - 1);
  const size_t found = given ? e.tensors("bins").size() : e.ints("bins").size();
  e.check(dimensions > 0 && static_cast<int64_t>(found) == dimensions,
          base::str("expected bins for each of ", dimensions, " dimensions, found ", found));
  const DType compute = compute_type(self.dtype());
  const int64_t count = self.type().numel() / dimensions;
  const Value points = b.reshape(to(b, self, compute), {count, dimensions});
  const std::span<const double> ranges = given ? std::span<const double>() : e.doubles("range");
  e.check(ranges.empty() || static_cast<int64_t>(ranges.size()) == 2 * dimensions,
          base::str("expected a range of ", 2 * dimensions, " numbers, found ", ranges.size()));
  std::vector<Value> edges;
  Dims bins;
  Value place, inside;
  for (int64_t d = 0; d < dimensions; ++d) {
    const auto at = static_cast<size_t>(d);
    const Value x = b.reshape(b.slice_dim(points, 1, d, d + 1), {count});
    if (given) check_edges(e, e.tensors("bins")[at], self.dtype());
    edges.push_back(
        given ? to(b, e.tensors("bins")[at], compute)
              : even_edges(e, x, e.ints("bins")[at], ranges.empty() ? ranges : ranges.subspan(2 * at, 2)));
    const int64_t here = edges.back().dim(0) - 1;
    const Value bin = bin_of(b, x, edges.back());
    const Value is_inside = is_less(b, bin, static_cast<double>(here));
    place = d == 0 ? bin : b.add(b.multiply(place, b.splat(here, place.type())), bin);
    inside = d == 0 ? is_inside : b.and_(inside, is_inside);
    bins.push_back(here);
  }
  const int64_t all = Type{compute, bins}.numel();
  const Dims of_points(self.dims().begin(), self.dims().end() - 1);
  Value counts = scatter_slices(b, zeros(b, Type{compute, {all}}), 0,
                                b.select(inside, place, b.splat(all, place.type())),
                                weights_of(e, of_points, compute), add_update());
  const Value sum = b.broadcast(b.reduce_sum(counts, {0}), bins);
  counts = b.reshape(counts, bins);
  if (e.boolean("density")) {
    counts = b.divide(counts, sum);
    for (int64_t d = 0; d < dimensions; ++d)
      counts = b.divide(counts, b.broadcast_in_dim(widths_of(b, edges[static_cast<size_t>(d)]), bins, {d}));
  }
  return {to(b, counts, self.dtype())};
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
