// Adaptive pooling: windows that cover the input evenly; their sizes differ by one if they do not divide it.
#include <algorithm>
#include <limits>

#include "sluice/base/text/join.h"
#include "sluice/ops/images/pooling.h"
#include "sluice/ops/images/taps.h"
#include "sluice/ops/indexing/indexing.h"

namespace sluice::ops::pooling {
namespace {

struct Adaptive {
  int64_t spatial = 0;
  Dims in, out;
};

Adaptive read(Emit& e, const Dims& out) {
  Adaptive a;
  a.spatial = spatial_count(e);
  const Value x = e.tensor("self");
  e.check(x.rank() == a.spatial + 1 || x.rank() == a.spatial + 2,
          base::str("expected ", a.spatial + 1, " or ", a.spatial + 2, " dimensions, found ", in_words(x)));
  a.in = spatial_sizes(x, a.spatial);
  a.out = out;
  e.check(std::none_of(a.in.begin(), a.in.end(), [](int64_t size) { return size == 0; }),
          base::str("expected spatial dimensions that are not empty, found ", in_words(x)));
  return a;
}

std::vector<Dims> counts(const Adaptive& a) {
  std::vector<Dims> result;
  for (size_t i = 0; i < a.in.size(); ++i) {
    result.emplace_back();
    for (const auto& row : adaptive_windows(a.in[i], a.out[i]))
      result.back().push_back(static_cast<int64_t>(row.size()));
  }
  return result;
}

// Returns a window table [out, widest]; shorter windows repeat their last position, which changes no maximum.
std::vector<int32_t> window_table(int64_t in, int64_t out, int64_t& widest) {
  const Taps taps = adaptive_windows(in, out);
  size_t width = 0;
  for (const auto& row : taps) width = std::max(width, row.size());
  std::vector<int32_t> table;
  for (const auto& row : taps)
    for (size_t k = 0; k < width; ++k)
      table.push_back(static_cast<int32_t>(row[std::min(k, row.size() - 1)].position));
  widest = static_cast<int64_t>(width);
  return table;
}

// The elements of all windows, [batch…, out, widest, out, widest…], and their positions (s32).
struct Gathered {
  Value values, where;
  Dims reduced;
};

Gathered gather_windows(Builder& b, Value x, const Adaptive& a) {
  Gathered g{.values = x, .where = {}, .reduced = {}};
  int64_t dim = x.rank() - a.spatial;
  std::vector<Value> tables;
  Dims first_dims;
  for (size_t i = 0; i < a.in.size(); ++i, dim += 2) {
    int64_t widest = 0;
    const std::vector<int32_t> table = window_table(a.in[i], a.out[i], widest);
    tables.push_back(b.constant(Type{DType::kS32, {a.out[i], widest}}, table.data()));
    g.values = take_along(b, g.values, dim, tables.back());
    g.reduced.push_back(dim + 1);
    first_dims.push_back(dim);
  }
  int64_t stride = 1;
  for (size_t i = a.in.size(); i-- > 0; stride *= a.in[i]) {
    const Value scaled = b.multiply(tables[i], b.splat(stride, tables[i].type()));
    const Value part = b.broadcast_in_dim(scaled, g.values.dims(), {first_dims[i], first_dims[i] + 1});
    g.where = g.where ? b.add(g.where, part) : part;
  }
  return g;
}

stablehlo::Window tiling_window(const Adaptive& a, int64_t rank) {
  stablehlo::Window window;
  window.sizes.assign(static_cast<size_t>(rank - a.spatial), 1);
  for (size_t i = 0; i < a.in.size(); ++i) window.sizes.push_back(a.in[i] / a.out[i]);
  window.strides = window.sizes;
  return window;
}

}  // namespace

Values adaptive_average(Emit& e) {
  Builder& b = e.b;
  const Adaptive a = read(e, expand_list(e, "output_size", spatial_count(e)));
  const Value self = e.tensor("self");
  Value sum = to(b, self, compute_type(self.dtype()));
  if (tiles(a.in, a.out)) {
    sum = sum_tiles(b, sum, a.out);
  } else {
    for (size_t i = 0; i < a.in.size(); ++i)
      sum = apply_taps(b, sum, self.rank() - a.spatial + static_cast<int64_t>(i),
                       adaptive_windows(a.in[i], a.out[i]));
  }
  return {to(b, divide_by_counts(b, sum, counts(a)), self.dtype())};
}

Values adaptive_average_backward(Emit& e) {
  Builder& b = e.b;
  const Value grad_output = e.tensor("grad_output"), self = e.tensor("self");
  const Adaptive a = read(e, spatial_sizes(grad_output, spatial_count(e)));
  Value grad = divide_by_counts(b, to(b, grad_output, compute_type(grad_output.dtype())), counts(a));
  if (tiles(a.in, a.out)) return {to(b, spread_tiles(b, grad, a.in), self.dtype())};
  for (size_t i = 0; i < a.in.size(); ++i)
    grad = apply_taps(b, grad, self.rank() - a.spatial + static_cast<int64_t>(i),
                      transposed(adaptive_windows(a.in[i], a.out[i]), a.in[i]));
  return {to(b, grad, self.dtype())};
}

Values adaptive_maximum(Emit& e) {
  Builder& b = e.b;
  const Adaptive a = read(e, expand_list(e, "output_size", spatial_count(e)));
  const Value x = e.tensor("self");
  if (tiles(a.in, a.out)) {
    const stablehlo::Window window = tiling_window(a, x.rank());
    return {window_maximum(b, x, window), to(b, window_argmax(b, x, a.spatial, window), DType::kS64)};
  }
  const Gathered g = gather_windows(b, x, a);
  const Values inits = {b.lowest(x.dtype()),
                        b.splat(int64_t{std::numeric_limits<int32_t>::max()}, Type{DType::kS32, {}})};
  const Values best = b.reduce(std::vector{g.values, g.where}, inits, g.reduced, better_of);
  return {b.reduce_max(g.values, g.reduced), to(b, best[1], DType::kS64)};
}

Values adaptive_maximum_backward(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self"), grad_output = e.tensor("grad_output");
  const Value grad = to(b, grad_output, compute_type(grad_output.dtype()));
  return {to(b, scatter_to_positions(b, grad, e.tensor("indices"), self, spatial_count(e)), self.dtype())};
}

}  // namespace sluice::ops::pooling
