// Resampling: nearest, linear and cubic interpolation in 1, 2 and 3 dimensions to another size, and of images
// at the points of a grid, with their gradients.
//
// Interpolation to another size runs dimension by dimension; each is a small table of (position, weight) made
// when the program is (taps.h). The gradient uses the same table transposed. Tables are computed in the
// arithmetic of the tensor's compute type, as LibTorch does, so that a position near an integer rounds to the
// same side. A grid is a tensor, so its positions and weights are values of the program.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/strings.h"
#include "sluice/ops/indexing.h"
#include "sluice/ops/taps.h"

namespace sluice::ops {
namespace {

enum class Filter { kNearest, kNearestExact, kLinear, kCubic, kLinearSmooth, kCubicSmooth };

// One dimension of a resampling.
struct Axis {
  int64_t in = 0, out = 0;
  bool align_corners = false;
  std::optional<double> scale;  // given by the user: out / in
};

// Input elements for one output element, in Real arithmetic.
template <typename Real>
Real ratio(const Axis& a) {
  if (a.align_corners)
    return a.out > 1 ? static_cast<Real>(a.in - 1) / static_cast<Real>(a.out - 1) : Real{0};
  if (a.scale && *a.scale > 0) return static_cast<Real>(1.0 / *a.scale);
  return static_cast<Real>(a.in) / static_cast<Real>(a.out);
}

int64_t clamp_position(int64_t i, int64_t size) { return std::clamp<int64_t>(i, 0, size - 1); }

template <typename Real>
Taps nearest_taps(const Axis& a, bool exact) {
  const Real step = ratio<Real>(a);
  Taps taps;
  for (int64_t i = 0; i < a.out; ++i) {
    const Real position = std::floor((static_cast<Real>(i) + (exact ? Real{0.5} : Real{0})) * step);
    taps.push_back({{clamp_position(static_cast<int64_t>(position), a.in), 1}});
  }
  return taps;
}

template <typename Real>
Real source_position(const Axis& a, Real step, int64_t i) {
  const auto index = static_cast<Real>(i);
  return a.align_corners ? step * index : step * (index + Real{0.5}) - Real{0.5};
}

template <typename Real>
Taps linear_taps(const Axis& a) {
  const Real step = ratio<Real>(a);
  Taps taps;
  for (int64_t i = 0; i < a.out; ++i) {
    if (a.in == a.out) {
      taps.push_back({{i, 1}});
      continue;
    }
    const Real position = std::max(source_position(a, step, i), Real{0});
    const int64_t low = std::min(static_cast<int64_t>(position), a.in - 1);
    const Real high_weight = std::clamp(position - static_cast<Real>(low), Real{0}, Real{1});
    taps.push_back({{low, Real{1} - high_weight}, {std::min(low + 1, a.in - 1), high_weight}});
  }
  return taps;
}

// Keys' cubic kernel.
template <typename Real>
Real cubic_weight(Real x, Real a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

template <typename Real>
Taps cubic_taps(const Axis& a) {
  const Real step = ratio<Real>(a);
  Taps taps;
  for (int64_t i = 0; i < a.out; ++i) {
    const Real position = source_position(a, step, i), low = std::floor(position), part = position - low;
    taps.emplace_back();
    for (int64_t k = -1; k <= 2; ++k)
      taps.back().push_back({clamp_position(static_cast<int64_t>(low) + k, a.in),
                             cubic_weight<Real>(part - static_cast<Real>(k), Real{-0.75})});
  }
  return taps;
}

// With antialiasing: the kernel is stretched when the image shrinks, and its weights add up to 1.
template <typename Real>
Taps smooth_taps(const Axis& a, bool cubic) {
  const Real step = ratio<Real>(a), shift = Real{0.5};
  const Real stretch = std::max(step, Real{1}), reach = (cubic ? Real{2} : Real{1}) * stretch;
  Taps taps;
  for (int64_t i = 0; i < a.out; ++i) {
    const Real center = step * (static_cast<Real>(i) + shift);
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - reach + shift), 0);
    const int64_t last = std::min<int64_t>(static_cast<int64_t>(center + reach + shift), a.in);
    Real total = 0;
    taps.emplace_back();
    for (int64_t k = first; k < last; ++k) {
      const Real x = (static_cast<Real>(k) - center + shift) / stretch;
      const Real weight =
          cubic ? cubic_weight<Real>(x, Real{-0.5}) : std::max(Real{1} - std::abs(x), Real{0});
      taps.back().push_back({k, weight});
      total += weight;
    }
    for (Tap& tap : taps.back())
      if (total != 0) tap.weight /= total;
  }
  return taps;
}

template <typename Real>
Taps make_taps(Filter filter, const Axis& a) {
  switch (filter) {
    case Filter::kNearest:
      return nearest_taps<Real>(a, false);
    case Filter::kNearestExact:
      return nearest_taps<Real>(a, true);
    case Filter::kLinear:
      return linear_taps<Real>(a);
    case Filter::kCubic:
      return cubic_taps<Real>(a);
    case Filter::kLinearSmooth:
      return smooth_taps<Real>(a, false);
    case Filter::kCubicSmooth:
      return smooth_taps<Real>(a, true);
  }
  return {};
}

std::vector<std::string_view> scale_names(size_t spatial) {
  if (spatial == 1) return {"scales"};
  if (spatial == 2) return {"scales_h", "scales_w"};
  return {"scales_d", "scales_h", "scales_w"};
}

std::vector<Axis> read_axes(Emit& e, const Dims& input) {
  const Dims& out = e.ints("output_size");
  const size_t spatial = out.size();
  e.check(input.size() == spatial + 2,
          base::str("expected an input of ", spatial + 2, " dimensions, found ", input.size()));
  std::vector<Axis> axes;
  for (size_t i = 0; i < spatial; ++i) {
    Axis a{.in = input[i + 2], .out = out[i], .align_corners = false, .scale = {}};
    e.check(a.in > 0 && a.out > 0, "expected input and output sizes above 0");
    if (e.has("align_corners")) a.align_corners = e.boolean("align_corners");
    if (e.has(scale_names(spatial)[i])) a.scale = e.number(scale_names(spatial)[i]);
    axes.push_back(a);
  }
  return axes;
}

// The taps repeat each input element the same number of times (or the output has the input's size).
bool repeats(const Taps& taps, const Axis& a) {
  if (a.out % a.in != 0) return false;
  for (size_t i = 0; i < taps.size(); ++i)
    if (taps[i].size() != 1 || taps[i][0].position != static_cast<int64_t>(i) / (a.out / a.in) ||
        taps[i][0].weight != 1)
      return false;
  return true;
}

// [..., n, ...] -> [..., n, times, ...] -> [..., n * times, ...]
Value repeat_elements(Builder& b, Value x, int64_t dim, int64_t times) {
  if (times == 1) return x;
  Dims split = x.dims(), kept, merged = x.dims();
  split.insert(split.begin() + dim + 1, times);
  for (int64_t d = 0; d < x.rank(); ++d) kept.push_back(d <= dim ? d : d + 1);
  merged[static_cast<size_t>(dim)] *= times;
  return b.reshape(b.broadcast_in_dim(x, split, kept), merged);
}

Value sum_repeats(Builder& b, Value x, int64_t dim, int64_t times) {
  if (times == 1) return x;
  Dims split = x.dims();
  split[static_cast<size_t>(dim)] /= times;
  split.insert(split.begin() + dim + 1, times);
  return b.reduce_sum(b.reshape(x, split), {dim + 1});
}

Taps taps_for(Emit& e, Filter filter, const Axis& a, DType dtype) {
  const bool picks = filter == Filter::kNearest || filter == Filter::kNearestExact;
  if (!stablehlo::is_float(dtype) && !picks)
    throw Error(Code::kUnimplemented, base::str(e.op(), ": expected a float tensor"));
  return dtype == DType::kF64 ? make_taps<double>(filter, a) : make_taps<float>(filter, a);
}

template <Filter filter>
Values upsample(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self");
  Value x = to(b, self, compute_type(self.dtype()));
  const std::vector<Axis> axes = read_axes(e, self.dims());
  for (size_t i = 0; i < axes.size(); ++i) {
    const Taps taps = taps_for(e, filter, axes[i], x.dtype());
    const auto dim = static_cast<int64_t>(i + 2);
    x = repeats(taps, axes[i]) ? repeat_elements(b, x, dim, axes[i].out / axes[i].in)
                               : apply_taps(b, x, dim, taps);
  }
  return {to(b, x, self.dtype())};
}

template <Filter filter>
Values upsample_backward(Emit& e) {
  Builder& b = e.b;
  const Value grad_output = e.tensor("grad_output");
  Value grad = to(b, grad_output, compute_type(grad_output.dtype()));
  const std::vector<Axis> axes = read_axes(e, e.ints("input_size"));
  for (size_t i = axes.size(); i-- > 0;) {
    const Taps taps = taps_for(e, filter, axes[i], grad.dtype());
    const auto dim = static_cast<int64_t>(i + 2);
    grad = repeats(taps, axes[i]) ? sum_repeats(b, grad, dim, axes[i].out / axes[i].in)
                                  : apply_taps(b, grad, dim, transposed(taps, axes[i].in));
  }
  return {to(b, grad, grad_output.dtype())};
}

// ---- Images at the points of a grid ----

enum class GridFilter : int64_t { kLinear, kNearest, kCubic };      // numbered as in LibTorch
enum class GridPadding : int64_t { kZeros, kBorder, kReflection };  // the same

// One dimension of the image.
struct GridAxis {
  int64_t size = 0;
  GridFilter filter = GridFilter::kLinear;
  GridPadding padding = GridPadding::kZeros;
  bool align_corners = false;
};

// A coordinate in elements of the image, and its derivative by the grid's coordinate.
struct Coordinate {
  Value at, slope;
};

// The elements of one dimension that each point reads, all [N, H_out, W_out, taps].
struct GridTaps {
  Value position;  // s32; -1 outside of the image
  Value weight;
  Value slope;  // the weight's derivative by the grid's coordinate
};

// -1 and 1 are the centres of the first and the last element with align_corners, else their outer edges.
Coordinate in_elements(Builder& b, Value grid, const GridAxis& axis) {
  const double scale = static_cast<double>(axis.align_corners ? axis.size - 1 : axis.size) / 2;
  const Value slope = number_like(b, scale, grid);
  const Value at = b.multiply(b.add(grid, number_like(b, 1, grid)), slope);
  return {axis.align_corners ? at : b.subtract(at, number_like(b, 0.5, at)), slope};
}

// NaN becomes 0; a coordinate on the border counts as outside for the gradient.
Coordinate clip(Builder& b, const Coordinate& c, int64_t size) {
  const Value zero = zeros(b, c.at.type()), last = number_like(b, static_cast<double>(size - 1), c.at);
  const Value above = b.compare(c.at, zero, Compare::kGt), below = b.compare(c.at, last, Compare::kLt);
  return {b.minimum(b.select(above, c.at, zero), last), b.select(b.and_(above, below), c.slope, zero)};
}

// Reflected at the border elements' centres with align_corners, else at their outer edges.
Coordinate reflect(Builder& b, const Coordinate& c, const GridAxis& axis) {
  const Value zero = zeros(b, c.at.type());
  const int64_t period = 2 * (axis.align_corners ? axis.size - 1 : axis.size);
  if (period == 0) return {zero, zero};
  const Value low = number_like(b, axis.align_corners ? 0 : -0.5, c.at);
  const Value full = number_like(b, static_cast<double>(period), c.at);
  const Value from_low = b.subtract(c.at, low), distance = b.abs(from_low);
  const Value there = b.subtract(distance, b.multiply(truncate(b, b.divide(distance, full)), full));
  const Value back = b.subtract(full, there), on_way_back = b.compare(there, back, Compare::kGt);
  const Value falls = b.xor_(on_way_back, is_less(b, from_low, 0));
  return {b.add(b.select(on_way_back, back, there), low), b.select(falls, b.negate(c.slope), c.slope)};
}

Coordinate padded(Builder& b, const Coordinate& c, const GridAxis& axis) {
  if (axis.padding == GridPadding::kZeros) return c;
  return clip(b, axis.padding == GridPadding::kReflection ? reflect(b, c, axis) : c, axis.size);
}

// p[0] x^(n-1) + … + p[n-1], by Horner's rule.
Value polynomial(Builder& b, Value x, std::initializer_list<double> p) {
  Value sum;
  for (const double coefficient : p) {
    const Value c = number_like(b, coefficient, x);
    sum = sum ? b.add(b.multiply(sum, x), c) : c;
  }
  return sum;
}

// The four weights of Keys' kernel at a fraction t between two elements, and their derivatives by t.
std::pair<Values, Values> cubic_weights(Builder& b, Value t) {
  constexpr double a = -0.75;
  const Value one = number_like(b, 1, t), rest = b.subtract(one, t);
  const auto near = [&](Value x) { return polynomial(b, x, {a + 2, -(a + 3), 0, 1}); };
  const auto far = [&](Value x) { return polynomial(b, x, {a, -5 * a, 8 * a, -4 * a}); };
  const auto near_slope = [&](Value x) { return polynomial(b, x, {3 * (a + 2), -2 * (a + 3), 0}); };
  const auto far_slope = [&](Value x) { return polynomial(b, x, {3 * a, -10 * a, 8 * a}); };
  const Value before = b.add(t, one), behind = b.add(rest, one);
  return {{far(before), near(t), near(rest), far(behind)},
          {far_slope(before), near_slope(t), b.negate(near_slope(rest)), b.negate(far_slope(behind))}};
}

// Values [N, H_out, W_out] side by side in a new last dimension.
Value side_by_side(Builder& b, const Values& values) {
  Values columns;
  for (const Value& value : values) {
    Dims dims = value.dims();
    dims.push_back(1);
    columns.push_back(b.reshape(value, dims));
  }
  return columns.size() == 1 ? columns[0] : b.concatenate(columns, columns[0].rank() - 1);
}

GridTaps grid_taps(Builder& b, Value grid, const GridAxis& axis) {
  Coordinate c = in_elements(b, grid, axis);
  if (axis.filter != GridFilter::kCubic) c = padded(b, c, axis);
  const Value low = axis.filter == GridFilter::kNearest ? b.round_even(c.at) : b.floor(c.at);
  const Value part = b.subtract(c.at, low), one = number_like(b, 1, part);
  Values weights, slopes;
  int64_t first = 0;
  if (axis.filter == GridFilter::kNearest) {
    weights = {one};
    slopes = {zeros(b, part.type())};
  } else if (axis.filter == GridFilter::kLinear) {
    weights = {b.subtract(one, part), part};
    slopes = {b.negate(c.slope), c.slope};
  } else {
    std::tie(weights, slopes) = cubic_weights(b, part);
    for (Value& slope : slopes) slope = b.multiply(slope, c.slope);
    first = -1;
  }
  Values positions;
  for (size_t k = 0; k < weights.size(); ++k) {
    Value at = b.add(low, number_like(b, static_cast<double>(first + static_cast<int64_t>(k)), low));
    if (axis.filter == GridFilter::kCubic) at = padded(b, {at, c.slope}, axis).at;
    const Value last = number_like(b, static_cast<double>(axis.size - 1), at);
    const Value inside =
        b.and_(b.compare(at, zeros(b, at.type()), Compare::kGe), b.compare(at, last, Compare::kLe));
    positions.push_back(b.convert(b.select(inside, at, number_like(b, -1, at)), DType::kS32));
  }
  return {side_by_side(b, positions), side_by_side(b, weights), side_by_side(b, slopes)};
}

// What both directions of a grid's sampling need. A point reads a window of KH x KW elements of each channel.
struct GridSample {
  Value image;  // [N, C, H, W], in the compute type
  GridTaps y, x;
  Value index;   // s32 [N, H_out, W_out, KH, KW, 3]: image, row, column
  Value inside;  // predicate [N, C, H_out, W_out, KH, KW]
  Dims windows;  // the dims of `inside`

  // A value of the rows' taps times one of the columns', for each channel.
  Value outer(Builder& b, Value of_y, Value of_x) const {
    const Dims dims = {windows[0], windows[2], windows[3], windows[4], windows[5]};
    const Value product = b.multiply(b.broadcast_in_dim(of_y, dims, {0, 1, 2, 3}),
                                     b.broadcast_in_dim(of_x, dims, {0, 1, 2, 4}));
    return b.broadcast_in_dim(product, windows, {0, 2, 3, 4, 5});
  }
  // [N, C, H_out, W_out, KH, KW], 0 outside of the image.
  Value read(Builder& b) const {
    if (inside.type().numel() == 0) return zeros(b, Type{image.dtype(), windows});
    const Value found = b.gather(image, index,
                                 {.offset_dims = {1},
                                  .collapsed_slice_dims = {0, 2, 3},
                                  .start_index_map = {0, 2, 3},
                                  .index_vector_dim = 5,
                                  .slice_sizes = {1, image.dim(1), 1, 1}});
    return b.select(inside, found, zeros(b, found.type()));
  }
  // The updates added to zeros of the image's size; those outside of it are dropped.
  Value add_up(Builder& b, Value updates) const {
    if (updates.type().numel() == 0) return zeros(b, image.type());
    return b.scatter(zeros(b, image.type()), index, updates,
                     {.update_window_dims = {1},
                      .inserted_window_dims = {0, 2, 3},
                      .scatter_dims_to_operand_dims = {0, 2, 3},
                      .index_vector_dim = 5},
                     add_update());
  }
};

GridSample read_grid(Emit& e) {
  Builder& b = e.b;
  const Value input = e.tensor("input"), grid = e.tensor("grid");
  e.check(
      stablehlo::is_float(input.dtype()) && input.dtype() == grid.dtype() && input.rank() == 4 &&
          grid.rank() == 4 && grid.dim(0) == input.dim(0) && grid.dim(3) == 2 && input.dim(2) > 0 &&
          input.dim(3) > 0,
      base::str("expected float tensors [N, C, H, W] and [N, H_out, W_out, 2] of one element type, with H "
                "and W above 0, found ",
                input.type().str(), " and ", grid.type().str()));
  const int64_t filter = e.integer("interpolation_mode"), padding = e.integer("padding_mode");
  e.check(filter >= 0 && filter <= 2 && padding >= 0 && padding <= 2,
          base::str("expected an interpolation mode and a padding mode of 0 to 2, found ", filter, " and ",
                    padding));
  GridAxis axis{.filter = static_cast<GridFilter>(filter),
                .padding = static_cast<GridPadding>(padding),
                .align_corners = e.boolean("align_corners")};
  const DType compute = compute_type(input.dtype());
  const Dims points(grid.dims().begin(), grid.dims().end() - 1);
  const auto taps = [&](int64_t column, int64_t dim) {
    axis.size = input.dim(dim);
    return grid_taps(b, to(b, b.reshape(b.slice_dim(grid, 3, column, column + 1), points), compute), axis);
  };
  GridSample s;
  s.image = to(b, input, compute);
  s.y = taps(1, 2);
  s.x = taps(0, 3);
  const int64_t rows = s.y.weight.dim(3), columns = s.x.weight.dim(3);
  s.windows = {input.dim(0), input.dim(1), points[1], points[2], rows, columns};
  const Dims window = {input.dim(0), points[1], points[2], rows, columns};
  const Value y = b.broadcast_in_dim(s.y.position, window, {0, 1, 2, 3});
  const Value x = b.broadcast_in_dim(s.x.position, window, {0, 1, 2, 4});
  s.index = side_by_side(b, {positions(b, window, 0), y, x});
  const Value inside = b.not_(b.or_(is_less(b, y, 0), is_less(b, x, 0)));
  s.inside = b.broadcast_in_dim(inside, s.windows, {0, 2, 3, 4, 5});
  return s;
}

Values grid_sampler(Emit& e) {
  Builder& b = e.b;
  const GridSample s = read_grid(e);
  const Value weighted = b.multiply(s.read(b), s.outer(b, s.y.weight, s.x.weight));
  return {to(b, b.reduce_sum(weighted, {4, 5}), e.tensor("input").dtype())};
}

Values grid_sampler_backward(Emit& e) {
  Builder& b = e.b;
  const GridSample s = read_grid(e);
  const Value grad_output = e.tensor("grad_output");
  e.check(grad_output.dims() == Dims(s.windows.begin(), s.windows.begin() + 4),
          base::str("expected a gradient of the result's shape, found ", grad_output.type().str()));
  const DType dtype = e.tensor("input").dtype();
  const Value grad = b.broadcast_in_dim(to(b, grad_output, s.image.dtype()), s.windows, {0, 1, 2, 3});
  const Dims& mask = e.ints("output_mask");
  Values results(2);
  if (mask[0] != 0)
    results[0] = to(b, s.add_up(b, b.multiply(grad, s.outer(b, s.y.weight, s.x.weight))), dtype);
  if (mask[1] != 0) {
    const Value moved = b.multiply(grad, s.read(b));
    const auto sum = [&](Value by) { return b.reduce_sum(b.multiply(moved, by), {1, 4, 5}); };
    const Values of_grid = {sum(s.outer(b, s.y.weight, s.x.slope)), sum(s.outer(b, s.y.slope, s.x.weight))};
    results[1] = to(b, side_by_side(b, of_grid), dtype);
  }
  return results;
}

constexpr std::string_view kScales1 = "scales", kScales2 = "scales_h scales_w",
                           kScales3 = "scales_d scales_h scales_w";
constexpr Row kRows[] = {
    {"aten::upsample_nearest1d", upsample<Filter::kNearest>, kScales1},
    {"aten::upsample_nearest1d_backward", upsample_backward<Filter::kNearest>, kScales1},
    {"aten::upsample_nearest2d", upsample<Filter::kNearest>, kScales2},
    {"aten::upsample_nearest2d_backward", upsample_backward<Filter::kNearest>, kScales2},
    {"aten::upsample_nearest3d", upsample<Filter::kNearest>, kScales3},
    {"aten::upsample_nearest3d_backward", upsample_backward<Filter::kNearest>, kScales3},
    {"aten::_upsample_nearest_exact1d", upsample<Filter::kNearestExact>, kScales1},
    {"aten::_upsample_nearest_exact1d_backward", upsample_backward<Filter::kNearestExact>, kScales1},
    {"aten::_upsample_nearest_exact2d", upsample<Filter::kNearestExact>, kScales2},
    {"aten::_upsample_nearest_exact2d_backward", upsample_backward<Filter::kNearestExact>, kScales2},
    {"aten::_upsample_nearest_exact3d", upsample<Filter::kNearestExact>, kScales3},
    {"aten::_upsample_nearest_exact3d_backward", upsample_backward<Filter::kNearestExact>, kScales3},
    {"aten::upsample_linear1d", upsample<Filter::kLinear>, kScales1},
    {"aten::upsample_linear1d_backward", upsample_backward<Filter::kLinear>, kScales1},
    {"aten::upsample_bilinear2d", upsample<Filter::kLinear>, kScales2},
    {"aten::upsample_bilinear2d_backward", upsample_backward<Filter::kLinear>, kScales2},
    {"aten::upsample_trilinear3d", upsample<Filter::kLinear>, kScales3},
    {"aten::upsample_trilinear3d_backward", upsample_backward<Filter::kLinear>, kScales3},
    {"aten::upsample_bicubic2d", upsample<Filter::kCubic>, kScales2},
    {"aten::upsample_bicubic2d_backward", upsample_backward<Filter::kCubic>, kScales2},
    {"aten::_upsample_bilinear2d_aa", upsample<Filter::kLinearSmooth>, kScales2},
    {"aten::_upsample_bilinear2d_aa_backward", upsample_backward<Filter::kLinearSmooth>, kScales2},
    {"aten::_upsample_bicubic2d_aa", upsample<Filter::kCubicSmooth>, kScales2},
    {"aten::_upsample_bicubic2d_aa_backward", upsample_backward<Filter::kCubicSmooth>, kScales2},
    {"aten::grid_sampler_2d", grid_sampler},
    {"aten::grid_sampler_2d_backward", grid_sampler_backward},
};

}  // namespace

std::span<const Row> resample_rows() { return kRows; }

}  // namespace sluice::ops
