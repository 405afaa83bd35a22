// Samples images at the points of a grid (grid_sample), in 2 and 3 dimensions, with the gradients. A grid is
// a tensor, so its positions and weights are values of the program.
#include <array>
#include <tuple>
#include <utility>

#include "sluice/base/text/join.h"
#include "sluice/ops/images/resample.h"
#include "sluice/ops/indexing/indexing.h"
#include "sluice/ops/special/special.h"

namespace sluice::ops::resample {
namespace {

enum class GridFilter : int64_t { kLinear, kNearest, kCubic };      // numbered as in LibTorch
enum class GridPadding : int64_t { kZeros, kBorder, kReflection };  // numbered as in LibTorch

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

// The elements of one dimension that each point reads, all [N, points…, taps].
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

// Clips a coordinate to the image. NaN becomes 0; a coordinate on the border counts as outside for the
// gradient.
Coordinate clip(Builder& b, const Coordinate& c, int64_t size) {
  const Value zero = zeros(b, c.at.type()), last = number_like(b, static_cast<double>(size - 1), c.at);
  const Value above = b.compare(c.at, zero, Compare::kGt), below = b.compare(c.at, last, Compare::kLt);
  return {b.minimum(b.select(above, c.at, zero), last), b.select(b.and_(above, below), c.slope, zero)};
}

// Reflects a coordinate at the border elements' centres with align_corners, else at their outer edges.
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

// Returns p[0] x³ + p[1] x² + p[2] x + p[3].
Value cubic(Builder& b, Value x, const std::array<double, 4>& p) { return special::polynomial(b, x, p); }
Value quadratic(Builder& b, Value x, const std::array<double, 3>& p) { return special::polynomial(b, x, p); }

// Returns the four weights of Keys' kernel at a fraction t between two elements, and their derivatives by t.
std::pair<Values, Values> cubic_weights(Builder& b, Value t) {
  constexpr double a = -0.75;
  const Value one = number_like(b, 1, t), rest = b.subtract(one, t);
  const auto near = [&](Value x) { return cubic(b, x, {a + 2, -(a + 3), 0, 1}); };
  const auto far = [&](Value x) { return cubic(b, x, {a, -5 * a, 8 * a, -4 * a}); };
  const auto near_slope = [&](Value x) { return quadratic(b, x, {3 * (a + 2), -2 * (a + 3), 0}); };
  const auto far_slope = [&](Value x) { return quadratic(b, x, {3 * a, -10 * a, 8 * a}); };
  const Value before = b.add(t, one), behind = b.add(rest, one);
  return {{far(before), near(t), near(rest), far(behind)},
          {far_slope(before), near_slope(t), b.negate(near_slope(rest)), b.negate(far_slope(behind))}};
}

// Joins values [N, points…] in a new last dimension.
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

// The values that both directions of a grid's sampling need. A point reads a window of elements of each
// channel. Points and windows have the same number of dimensions as the image, `spatial`.
struct GridSample {
  int64_t spatial = 2;
  Value image;                 // [N, C, in…], in the compute type
  std::vector<GridTaps> taps;  // one for each of the image's dimensions
  Value index;                 // s32 [N, points…, window…, 1 + spatial]: image, place in each dimension
  Value inside;                // predicate, with the dims `windows`
  Dims windows;                // [N, C, points…, window…]

  Dims window_dims() const {
    Dims dims;
    for (int64_t d = spatial + 2; d < 2 * spatial + 2; ++d) dims.push_back(d);
    return dims;
  }
  // Returns the positions of an image's dimensions, without its channels.
  Dims places() const {
    Dims dims = {0};
    for (int64_t d = 2; d < spatial + 2; ++d) dims.push_back(d);
    return dims;
  }
  // Repeats [N, points…, window…] for each channel.
  Value for_channels(Builder& b, Value x) const {
    Dims dims = {0};
    for (int64_t d = 2; d < 2 * spatial + 2; ++d) dims.push_back(d);
    return b.broadcast_in_dim(x, windows, dims);
  }
  // Repeats one dimension's taps, [N, points…, taps], as [N, points…, window…].
  Value along(Builder& b, Value of_taps, int64_t dim) const {
    Dims all = windows, dims;
    all.erase(all.begin() + 1);
    for (int64_t d = 0; d <= spatial; ++d) dims.push_back(d);
    dims.push_back(spatial + 1 + dim);
    return b.broadcast_in_dim(of_taps, all, dims);
  }
  // Returns the product of all dimensions' weights, or its derivative by the grid's coordinate of one
  // dimension.
  Value weights(Builder& b, std::optional<int64_t> by = {}) const {
    Value product;
    for (int64_t d = 0; d < spatial; ++d) {
      const GridTaps& t = taps[static_cast<size_t>(d)];
      const Value factor = along(b, d == by ? t.slope : t.weight, d);
      product = product ? b.multiply(product, factor) : factor;
    }
    return for_channels(b, product);
  }
  // Reads the windows, with the dims `windows`; 0 outside of the image.
  Value read(Builder& b) const {
    if (inside.type().numel() == 0) return zeros(b, Type{image.dtype(), windows});
    Dims sizes(image.dims().size(), 1);
    sizes[1] = image.dim(1);
    const Value found = b.gather(image, index,
                                 {.offset_dims = {1},
                                  .collapsed_slice_dims = places(),
                                  .start_index_map = places(),
                                  .index_vector_dim = 2 * spatial + 1,
                                  .slice_sizes = sizes});
    return b.select(inside, found, zeros(b, found.type()));
  }
  // Adds the updates to zeros of the image's size; updates outside of the image are dropped.
  Value add_up(Builder& b, Value updates) const {
    if (updates.type().numel() == 0) return zeros(b, image.type());
    return b.scatter(zeros(b, image.type()), index, updates,
                     {.update_window_dims = {1},
                      .inserted_window_dims = places(),
                      .scatter_dims_to_operand_dims = places(),
                      .index_vector_dim = 2 * spatial + 1},
                     add_update());
  }
};

void check_grid(Emit& e, Value input, Value grid, int64_t spatial) {
  bool right = stablehlo::is_float(input.dtype()) && input.dtype() == grid.dtype() &&
               input.rank() == spatial + 2 && grid.rank() == spatial + 2 && grid.dim(0) == input.dim(0) &&
               grid.dim(spatial + 1) == spatial;
  for (int64_t d = 2; right && d < input.rank(); ++d) right = input.dim(d) > 0;
  e.check(right, base::str("expected float tensors ",
                           spatial == 2 ? "[N, C, H, W] and [N, H_out, W_out, 2]"
                                        : "[N, C, D, H, W] and [N, D_out, H_out, W_out, 3]",
                           " of one element type, with no image of size 0, found ", in_words(input), " and ",
                           in_words(grid)));
  const int64_t filter = e.integer("interpolation_mode"), padding = e.integer("padding_mode");
  e.check(filter >= 0 && filter <= (spatial == 2 ? 2 : 1) && padding >= 0 && padding <= 2,
          base::str("expected an interpolation mode of 0 to ", spatial == 2 ? 2 : 1,
                    " and a padding mode of 0 to 2, found ", filter, " and ", padding));
}

GridSample read_grid(Emit& e) {
  Builder& b = e.b;
  const Value input = e.tensor("input"), grid = e.tensor("grid");
  GridSample s;
  s.spatial = e.op().find("3d") == std::string_view::npos ? 2 : 3;
  check_grid(e, input, grid, s.spatial);
  GridAxis axis{.filter = static_cast<GridFilter>(e.integer("interpolation_mode")),
                .padding = static_cast<GridPadding>(e.integer("padding_mode")),
                .align_corners = e.boolean("align_corners")};
  const DType compute = compute_type(input.dtype());
  const Dims points(grid.dims().begin(), grid.dims().end() - 1);
  s.image = to(b, input, compute);
  s.windows = input.dims();
  std::copy(points.begin() + 1, points.end(), s.windows.begin() + 2);
  for (int64_t d = 0; d < s.spatial; ++d) {
    axis.size = input.dim(d + 2);
    const int64_t column = s.spatial - 1 - d;  // a grid lists the coordinate of the last dimension first
    const Value coordinate = b.slice_dim(grid, s.spatial + 1, column, column + 1);
    s.taps.push_back(grid_taps(b, to(b, b.reshape(coordinate, points), compute), axis));
    s.windows.push_back(s.taps.back().weight.dim(s.spatial + 1));
  }
  Dims window = s.windows;
  window.erase(window.begin() + 1);
  Values index = {positions(b, window, 0)};
  Value outside;
  for (int64_t d = 0; d < s.spatial; ++d) {
    index.push_back(s.along(b, s.taps[static_cast<size_t>(d)].position, d));
    const Value below = is_less(b, index.back(), 0);
    outside = outside ? b.or_(outside, below) : below;
  }
  s.index = side_by_side(b, index);
  s.inside = s.for_channels(b, b.not_(outside));
  return s;
}

}  // namespace

Values grid_sampler(Emit& e) {
  Builder& b = e.b;
  const GridSample s = read_grid(e);
  const Value weighted = b.multiply(s.read(b), s.weights(b));
  return {to(b, b.reduce_sum(weighted, s.window_dims()), e.tensor("input").dtype())};
}

Values grid_sampler_backward(Emit& e) {
  Builder& b = e.b;
  const GridSample s = read_grid(e);
  const Value grad_output = e.tensor("grad_output");
  const Dims result(s.windows.begin(), s.windows.begin() + s.spatial + 2);
  e.check(grad_output.dims() == result,
          base::str("expected a gradient of the result's shape, found ", in_words(grad_output)));
  const DType dtype = e.tensor("input").dtype();
  Dims kept;
  for (int64_t d = 0; d < s.spatial + 2; ++d) kept.push_back(d);
  const Value grad = b.broadcast_in_dim(to(b, grad_output, s.image.dtype()), s.windows, kept);
  const Dims& mask = e.ints("output_mask");
  Values results(2);
  if (mask[0] != 0) results[0] = to(b, s.add_up(b, b.multiply(grad, s.weights(b))), dtype);
  if (mask[1] != 0) {
    const Value moved = b.multiply(grad, s.read(b));
    Dims summed = s.window_dims();
    summed.insert(summed.begin(), 1);
    Values of_grid;
    for (int64_t d = s.spatial; d-- > 0;)
      of_grid.push_back(b.reduce_sum(b.multiply(moved, s.weights(b, d)), summed));
    results[1] = to(b, side_by_side(b, of_grid), dtype);
  }
  return results;
}

}  // namespace sluice::ops::resample
