// Resampling: nearest, linear and cubic interpolation in 1, 2 and 3 dimensions to another size, with their
// gradients.
//
// Interpolation runs dimension by dimension. Each dimension is a small table of (position, weight) that is
// made with the program (taps.h). The gradient uses the transposed table. Tables are computed in the
// arithmetic of the tensor's compute type, as in LibTorch, so that a position near an integer rounds to the
// same side.
#include "sluice/ops/images/resample.h"

#include <algorithm>
#include <cmath>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/ops/images/taps.h"

namespace sluice::ops {
namespace {

enum class Filter { kNearest, kNearestExact, kLinear, kCubic, kLinearSmooth, kCubicSmooth };

// One dimension of a resampling.
struct Axis {
  int64_t in = 0, out = 0;
  bool align_corners = false;
  std::optional<double> scale;  // given by the user: out / in
};

// Returns the number of input elements for one output element, in Real arithmetic.
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

// Returns the weight of Keys' cubic kernel.
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

// Returns the taps with antialiasing: the kernel is stretched if the image shrinks, and its weights add up to
// 1.
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

// Returns whether the taps repeat each input element the same number of times (or the output has the input's
// size).
bool repeats(const Taps& taps, const Axis& a) {
  if (a.out % a.in != 0) return false;
  for (size_t i = 0; i < taps.size(); ++i)
    if (taps[i].size() != 1 || taps[i][0].position != static_cast<int64_t>(i) / (a.out / a.in) ||
        taps[i][0].weight != 1)
      return false;
  return true;
}

// Repeats elements: [..., n, ...] -> [..., n, times, ...] -> [..., n * times, ...].
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
    throw_error(Code::kUnimplemented, base::str(e.op(), ": expected a float tensor"));
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

constexpr std::string_view kScales1 = "scales", kScales2 = "scales_h scales_w",
                           kScales3 = "scales_d scales_h scales_w";
constexpr Row kResampleRows[] = {
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
    {"aten::grid_sampler_2d", resample::grid_sampler},
    {"aten::grid_sampler_2d_backward", resample::grid_sampler_backward},
    {"aten::grid_sampler_3d", resample::grid_sampler},
    {"aten::grid_sampler_3d_backward", resample::grid_sampler_backward},
};

}  // namespace

std::span<const Row> resample_rows() { return kResampleRows; }

}  // namespace sluice::ops
