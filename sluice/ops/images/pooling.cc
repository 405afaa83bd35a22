// Max and average pooling with strides, padding, dilation and ceil_mode.
//
// Max pooling computes values and positions separately: training needs the positions only for large windows,
// and unused values cost nothing. The gradient of small windows finds the maxima again (pooling_gradient.cc).
#include "sluice/ops/images/pooling.h"

#include <algorithm>
#include <limits>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/ops/indexing/indexing.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::ops {
namespace pooling {
namespace {

Dims spatial_axes(Value x, int64_t spatial) {
  Dims axes;
  for (int64_t d = x.rank() - spatial; d < x.rank(); ++d) axes.push_back(d);
  return axes;
}

int64_t output_size(const Pool& p, size_t i, bool ceil_mode) {
  const int64_t span = p.in[i] + 2 * p.padding[i] - p.dilation[i] * (p.kernel[i] - 1) - 1;
  const int64_t rounded = span + (ceil_mode ? p.stride[i] - 1 : 0);
  int64_t out = (rounded >= 0 ? rounded / p.stride[i] : -1) + 1;
  // The last window must start inside the input or its left padding.
  if (ceil_mode && (out - 1) * p.stride[i] >= p.in[i] + p.padding[i]) --out;
  return out;
}

// Returns the windows over a value of this rank, with the padding on the right that ceil_mode needs.
stablehlo::Window window_of(const Pool& p, int64_t rank) {
  const size_t batch = at(rank - p.spatial);
  stablehlo::Window w;
  w.sizes.assign(batch, 1);
  w.strides = w.window_dilations = w.sizes;
  w.padding.assign(batch, {0, 0});
  for (size_t i = 0; i < p.in.size(); ++i) {
    w.sizes.push_back(p.kernel[i]);
    w.strides.push_back(p.stride[i]);
    w.window_dilations.push_back(p.dilation[i]);
    const int64_t reach = (p.out[i] - 1) * p.stride[i] + p.dilation[i] * (p.kernel[i] - 1) + 1;
    w.padding.emplace_back(p.padding[i], std::max<int64_t>(reach - p.in[i] - p.padding[i], 0));
  }
  return w;
}

Value sum_windows(Builder& b, Value x, const stablehlo::Window& window) {
  return b.reduce_window(
      std::vector{x}, std::vector{b.splat(0, Type{x.dtype(), {}})}, window,
      [](Builder& r, std::span<const Value> v) -> Values { return {r.add(v[0], v[1])}; })[0];
}

// Returns the number of elements over which each window is averaged.
std::vector<Dims> window_counts(Emit& e, const Pool& p) {
  if (e.has("divisor_override")) {
    e.check(e.integer("divisor_override") != 0, "expected a divisor_override other than 0");
    std::vector<Dims> counts;
    for (int64_t out : p.out)
      counts.emplace_back(at(out), counts.empty() ? e.integer("divisor_override") : 1);
    return counts;
  }
  std::vector<Dims> counts;
  for (size_t i = 0; i < p.in.size(); ++i) {
    counts.emplace_back();
    for (int64_t o = 0; o < p.out[i]; ++o) {
      const int64_t start = o * p.stride[i] - p.padding[i];
      const int64_t end = std::min(start + p.kernel[i], p.in[i] + p.padding[i]);
      const int64_t inside = std::min(end, p.in[i]) - std::max<int64_t>(start, 0);
      counts.back().push_back(std::max<int64_t>(e.boolean("count_include_pad") ? end - start : inside, 1));
    }
  }
  return counts;
}

// Returns whether the windows are adjacent and cover the input exactly.
bool is_tiling(const Pool& p) {
  for (size_t i = 0; i < p.in.size(); ++i)
    if (p.kernel[i] != p.stride[i] || p.padding[i] != 0 || p.in[i] != p.out[i] * p.kernel[i]) return false;
  return true;
}

Values average(Emit& e) {
  Builder& b = e.b;
  const Pool p = read_pool(e);
  const Value self = e.tensor("self"), x = to(b, self, compute_type(self.dtype()));
  const Value sum = is_tiling(p) ? sum_tiles(b, x, p.out) : sum_windows(b, x, window_of(p, x.rank()));
  return {to(b, divide_by_counts(b, sum, window_counts(e, p)), self.dtype())};
}

// Gives each element of the input the sum over the windows that cover it: the gradient with zeros in its
// strides, summed over windows of stride 1.
Values average_backward(Emit& e) {
  Builder& b = e.b;
  const Pool p = read_pool(e);
  const Value grad_output = e.tensor("grad_output"), self = e.tensor("self");
  Value grad = to(b, grad_output, compute_type(grad_output.dtype()));
  grad = divide_by_counts(b, grad, window_counts(e, p));
  if (is_tiling(p)) return {to(b, spread_tiles(b, grad, p.in), self.dtype())};
  const size_t batch = at(self.rank() - p.spatial);
  Dims low(batch, 0), high(batch, 0), interior(batch, 0);
  stablehlo::Window window;
  window.sizes.assign(batch, 1);
  for (size_t i = 0; i < p.in.size(); ++i) {
    low.push_back(p.kernel[i] - 1 - p.padding[i]);
    high.push_back(p.in[i] + p.padding[i] - (p.out[i] - 1) * p.stride[i] - 1);
    interior.push_back(p.stride[i] - 1);
    window.sizes.push_back(p.kernel[i]);
  }
  grad = b.pad(grad, b.splat(0, Type{grad.dtype(), {}}), low, high, interior);
  return {to(b, sum_windows(b, grad, window), self.dtype())};
}

Values maximum(Emit& e) {
  Builder& b = e.b;
  const Pool p = read_pool(e);
  const Value x = e.tensor("self");
  const stablehlo::Window window = window_of(p, x.rank());
  const Value value = b.composite(stablehlo::composites::kMaxPooling, {x}, p.attributes(),
                                  [&] { return Values{window_maximum(b, x, window)}; })[0];
  return {value, to(b, window_argmax(b, x, p.spatial, window), DType::kS64)};
}

}  // namespace

int64_t spatial_count(const Emit& e) {
  const size_t digit = e.op().find_first_of("123");
  e.check(digit != std::string_view::npos, "expected 1d, 2d or 3d in the operation's name");
  return e.op()[digit] - '0';
}

Pool read_pool(Emit& e) {
  Pool p;
  p.spatial = spatial_count(e);
  const Value x = e.tensor("self");
  e.check(x.rank() == p.spatial + 1 || x.rank() == p.spatial + 2,
          base::str("expected ", p.spatial + 1, " or ", p.spatial + 2, " dimensions, found ", in_words(x)));
  p.in = spatial_sizes(x, p.spatial);
  p.kernel = expand_list(e, "kernel_size", p.spatial);
  p.stride = e.ints("stride").empty() ? p.kernel : expand_list(e, "stride", p.spatial);
  p.padding = expand_list(e, "padding", p.spatial);
  p.dilation = e.has("dilation") ? expand_list(e, "dilation", p.spatial) : Dims(at(p.spatial), 1);
  for (size_t i = 0; i < p.in.size(); ++i) {
    e.check(p.kernel[i] > 0 && p.stride[i] > 0 && p.dilation[i] > 0,
            "expected kernel_size, stride and dilation of 1 or more");
    e.check(p.padding[i] >= 0 && p.padding[i] <= (p.dilation[i] * (p.kernel[i] - 1) + 1) / 2,
            base::str("expected a padding of at most half of the kernel, found ", p.padding[i], " for ",
                      p.kernel[i]));
    p.out.push_back(output_size(p, i, e.boolean("ceil_mode")));
    e.check(p.out[i] >= 1,
            base::str("expected an input that holds at least one window, found ", in_words(x)));
  }
  return p;
}

Dims spatial_sizes(Value x, int64_t spatial) { return Dims(x.dims().end() - spatial, x.dims().end()); }

Value window_maximum(Builder& b, Value x, const stablehlo::Window& window) {
  return b.reduce_window(
      std::vector{x}, std::vector{b.lowest(x.dtype())}, window,
      [](Builder& r, std::span<const Value> v) -> Values { return {r.maximum(v[0], v[1])}; })[0];
}

Values better_of(Builder& b, std::span<const Value> v) {
  const Value later = b.compare(v[1], v[3], Compare::kGt), earlier = b.compare(v[1], v[3], Compare::kLt);
  const Value nan = is_nan(b, v[0]), other_nan = is_nan(b, v[2]), other_number = b.not_(other_nan);
  const Value larger =
      b.or_(b.compare(v[0], v[2], Compare::kGt), b.and_(b.compare(v[0], v[2], Compare::kEq), earlier));
  const Value keep = b.select(nan, b.or_(other_number, later), b.and_(other_number, larger));
  return {b.select(keep, v[0], v[2]), b.select(keep, v[1], v[3])};
}

Value window_argmax(Builder& b, Value x, int64_t spatial, const stablehlo::Window& window) {
  const Dims sizes = spatial_sizes(x, spatial);
  const int64_t count = Type{x.dtype(), sizes}.numel();
  Value position = narrow_index(b, positions(b, {count}, 0), count);
  position = b.broadcast_in_dim(b.reshape(position, sizes), x.dims(), spatial_axes(x, spatial));
  // Padding has the lowest value and the last position, so that it never wins over an element.
  const Values inits = {b.lowest(x.dtype()),
                        b.splat(int64_t{std::numeric_limits<int32_t>::max()}, Type{DType::kS32, {}})};
  return b.reduce_window(std::vector{x, position}, inits, window, better_of)[1];
}

Value scatter_to_positions(Builder& b, Value grad, Value indices, Value self, int64_t spatial) {
  const int64_t inputs = Type{DType::kS32, spatial_sizes(self, spatial)}.numel();
  const int64_t outputs = Type{DType::kS32, spatial_sizes(grad, spatial)}.numel();
  const int64_t planes = outputs == 0 ? 0 : grad.type().numel() / outputs;
  const Value index = b.reshape(narrow_index(b, indices, inputs), {planes, outputs});
  const Value target = zeros(b, Type{grad.dtype(), {planes, inputs}});
  return b.reshape(scatter_elements(b, target, 1, index, b.reshape(grad, {planes, outputs}), add_update()),
                   self.dims());
}

bool tiles(const Dims& in, const Dims& out) {
  for (size_t i = 0; i < in.size(); ++i)
    if (out[i] == 0 || in[i] % out[i] != 0) return false;
  return true;
}

Value sum_tiles(Builder& b, Value x, const Dims& out) {
  const int64_t batch = x.rank() - static_cast<int64_t>(out.size());
  Dims split(x.dims().begin(), x.dims().begin() + batch), inner;
  for (size_t i = 0; i < out.size(); ++i) {
    split.push_back(out[i]);
    inner.push_back(static_cast<int64_t>(split.size()));
    split.push_back(x.dims()[at(batch) + i] / out[i]);
  }
  return b.reduce_sum(b.reshape(x, split), inner);
}

Value spread_tiles(Builder& b, Value x, const Dims& in) {
  const int64_t batch = x.rank() - static_cast<int64_t>(in.size());
  Dims split(x.dims().begin(), x.dims().begin() + batch), outer, result = split;
  for (int64_t d = 0; d < batch; ++d) outer.push_back(d);
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t out = x.dims()[at(batch) + i];
    outer.push_back(static_cast<int64_t>(split.size()));
    split.push_back(out);
    split.push_back(in[i] / out);
    result.push_back(in[i]);
  }
  return b.reshape(b.broadcast_in_dim(x, split, outer), result);
}

Value divide_by_counts(Builder& b, Value x, const std::vector<Dims>& counts) {
  int64_t constant = 1;
  Value varying;
  for (size_t i = 0; i < counts.size(); ++i) {
    const Dims& list = counts[i];
    if (std::adjacent_find(list.begin(), list.end(), std::not_equal_to<>()) == list.end()) {
      constant *= list.empty() ? 1 : list[0];
      continue;
    }
    const int64_t dim = x.rank() - static_cast<int64_t>(counts.size() - i);
    const Value count = b.broadcast_in_dim(to(b, b.constant_i64(list), x.dtype()), x.dims(), {dim});
    varying = varying ? b.multiply(varying, count) : count;
  }
  if (!varying) return constant == 1 ? x : b.divide(x, b.splat(constant, x.type()));
  if (constant != 1) varying = b.multiply(varying, b.splat(constant, x.type()));
  return b.divide(x, varying);
}

namespace {
constexpr Row kPoolingRows[] = {
    {.name = "aten::max_pool2d_with_indices", .emit = maximum},
    {.name = "aten::max_pool2d_with_indices_backward", .emit = maximum_gradient},
    {.name = "aten::max_pool3d_with_indices", .emit = maximum},
    {.name = "aten::max_pool3d_with_indices_backward", .emit = maximum_gradient},
    {.name = "aten::avg_pool2d", .emit = average},
    {.name = "aten::avg_pool2d_backward", .emit = average_backward},
    {.name = "aten::avg_pool3d", .emit = average},
    {.name = "aten::avg_pool3d_backward", .emit = average_backward},
    {.name = "aten::_adaptive_avg_pool2d", .emit = adaptive_average},
    {.name = "aten::_adaptive_avg_pool2d_backward", .emit = adaptive_average_backward},
    {.name = "aten::_adaptive_avg_pool3d", .emit = adaptive_average},
    {.name = "aten::_adaptive_avg_pool3d_backward", .emit = adaptive_average_backward},
    {.name = "aten::adaptive_max_pool2d", .emit = adaptive_maximum},
    {.name = "aten::adaptive_max_pool2d_backward", .emit = adaptive_maximum_backward},
    {.name = "aten::adaptive_max_pool3d", .emit = adaptive_maximum},
    {.name = "aten::adaptive_max_pool3d_backward", .emit = adaptive_maximum_backward},
    {.name = "aten::max_unpool2d", .emit = unpool},
    {.name = "aten::max_unpool3d", .emit = unpool},
    {.name = "aten::fractional_max_pool2d", .emit = fractional_maximum},
    {.name = "aten::fractional_max_pool2d_backward", .emit = fractional_maximum_backward},
    {.name = "aten::fractional_max_pool3d", .emit = fractional_maximum},
    {.name = "aten::fractional_max_pool3d_backward", .emit = fractional_maximum_backward},
};
}  // namespace

}  // namespace pooling

std::span<const Row> pooling_rows() { return pooling::kPoolingRows; }

}  // namespace sluice::ops
