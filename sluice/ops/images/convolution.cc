// Convolutions of any number of spatial dimensions: strided, padded, dilated, grouped, transposed, and both
// backward passes, each as one StableHLO convolution.
//
// All six have one of two forms. "Gather" form: y[o] = sum x[o*s + k*d - p] w[k], the plain convolution.
// "Spread" form: x[i] = sum y[o] w[k] over i = o*s + k*d - p, its adjoint: the transposed convolution and the
// plain one's gradient. The weight's gradient is a gather form that swaps batch and features. Padding is
// always computed from the wanted result, so that output_padding and remainders of the stride need no special
// case.
#include <functional>
#include <numeric>

#include "sluice/base/text/join.h"
#include "sluice/ops/common.h"
#include "sluice/ops/images/expand_list.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::ops {
namespace {

using Padding = std::vector<std::pair<int64_t, int64_t>>;

// The arguments of one call; each list has one entry for each spatial dimension.
struct Convolution {
  int64_t spatial = 0;
  Dims stride, padding, dilation, output_padding;
  int64_t groups = 1;
  bool transposed = false;
};

Convolution read(Emit& e, Value input, Value weight) {
  Convolution c;
  c.spatial = weight.rank() - 2;
  e.check(c.spatial >= 1 && input.rank() == weight.rank(),
          base::str("expected input and weight of the same rank, 3 or more, found ", in_words(input), " and ",
                    in_words(weight)));
  e.check(input.dtype() == weight.dtype(), base::str("expected input and weight of one element type, found ",
                                                     in_words(input), " and ", in_words(weight)));
  c.stride = expand_list(e, "stride", c.spatial);
  c.padding = expand_list(e, "padding", c.spatial);
  c.dilation = expand_list(e, "dilation", c.spatial);
  c.output_padding = expand_list(e, "output_padding", c.spatial);
  c.groups = e.integer("groups");
  c.transposed = e.boolean("transposed");
  const int64_t channels = c.transposed ? weight.dim(0) : weight.dim(1) * c.groups;
  e.check(c.groups >= 1 && weight.dim(0) % c.groups == 0 && input.dim(1) == channels,
          base::str("expected an input with ", channels, " channels for weight ", in_words(weight), " and ",
                    c.groups, " groups, found ", in_words(input)));
  return c;
}

Dims range(int64_t first, int64_t count) {
  Dims dims(at(count));
  std::iota(dims.begin(), dims.end(), first);
  return dims;
}

// Returns the dimension numbers of [N, C, spatial…] * [O, I, spatial…] -> [N, O, spatial…].
stablehlo::ConvolutionDims plain_dims(int64_t spatial) {
  stablehlo::ConvolutionDims dims;
  dims.input_spatial = dims.kernel_spatial = dims.output_spatial = range(2, spatial);
  return dims;
}

// Runs `body` and marks its operations as one of the convolutions of composites.h.
Values marked(Emit& e, std::string_view name, const Values& operands, const Convolution& c,
              const std::function<Values()>& body) {
  return e.b.composite(
      name, operands,
      {{"stride", c.stride}, {"padding", c.padding}, {"dilation", c.dilation}, {"groups", c.groups}}, body);
}

// Returns the windows over x […, …, in…] in which a kernel […, …, k…] has `out` places, with the padding
// on the right that these need.
stablehlo::ConvolutionWindow window_over(const Convolution& c, Value x, Value kernel, const Dims& strides,
                                         const Dims& dilation, const Dims& out) {
  stablehlo::ConvolutionWindow window{
      .strides = strides, .rhs_dilation = dilation, .feature_groups = c.groups};
  for (int64_t i = 0; i < c.spatial; ++i) {
    const int64_t reach = (out[at(i)] - 1) * strides[at(i)] + (kernel.dim(i + 2) - 1) * dilation[at(i)] + 1;
    window.padding.emplace_back(c.padding[at(i)], reach - x.dim(i + 2) - c.padding[at(i)]);
  }
  window.lhs_dilation.assign(at(c.spatial), 1);
  return window;
}

// Computes y [N, O, out…] of the given spatial size from x [N, g*I, in…] and w [O, I, k…].
Value gather_form(Emit& e, const Convolution& c, Value x, Value w, const Dims& out) {
  Builder& b = e.b;
  const stablehlo::ConvolutionWindow window = window_over(c, x, w, c.stride, c.dilation, out);
  return marked(e, stablehlo::composites::kConvolution, {x, w}, c,
                [&] { return Values{b.convolution(x, w, plain_dims(c.spatial), window)}; })[0];
}

// Moves the groups from dimension 0 to 1, or from 1 to 0: [g*O, I, k…] -> [O, g*I, k…], or
// [N, g*I, in…] -> [g*N, I, in…].
Value move_groups(Builder& b, Value x, int64_t groups, size_t from) {
  if (groups == 1) return x;
  Dims merged = x.dims();
  merged[from] /= groups;
  Dims split = merged;
  split.insert(split.begin() + static_cast<std::ptrdiff_t>(from), groups);
  Dims order = range(0, x.rank() + 1);
  std::swap(order[0], order[1]);
  merged[1 - from] *= groups;
  return b.reshape(b.transpose(b.reshape(x, split), order), merged);
}

// Computes x [N, g*I, in…] of the given spatial size from y [N, g*O, out…] and w [g*O, I, k…].
Value spread_form(Emit& e, const Convolution& c, Value y, Value w, const Dims& in) {
  Builder& b = e.b;
  stablehlo::ConvolutionWindow window{
      .lhs_dilation = c.stride, .rhs_dilation = c.dilation, .feature_groups = c.groups};
  window.strides.assign(at(c.spatial), 1);
  for (int64_t i = 0; i < c.spatial; ++i) {
    const int64_t low = c.dilation[at(i)] * (w.dim(i + 2) - 1) - c.padding[at(i)];
    const int64_t spread = (y.dim(i + 2) - 1) * c.stride[at(i)] + 1;
    window.padding.emplace_back(low, in[at(i)] + c.padding[at(i)] - spread);
  }
  stablehlo::ConvolutionDims dims = plain_dims(c.spatial);
  std::swap(dims.kernel_input_feature, dims.kernel_output_feature);
  return marked(e, stablehlo::composites::kConvolutionOfX, {y, w}, c, [&] {
    const Value reversed = b.reverse(move_groups(b, w, c.groups, 0), range(2, c.spatial));
    return Values{b.convolution(y, reversed, dims, window)};
  })[0];
}

// Computes w [g*O, I, k…] from x [N, g*I, in…] and y [N, g*O, out…]: the weight's gradient of the gather form
// that made y from x. It swaps batch and features, and also stride and dilation; the groups are in the batch.
Value weight_form(Emit& e, const Convolution& c, Value x, Value y, const Dims& kernel) {
  Builder& b = e.b;
  const stablehlo::ConvolutionWindow window = window_over(c, x, y, c.dilation, c.stride, kernel);
  stablehlo::ConvolutionDims dims = plain_dims(c.spatial);
  std::swap(dims.input_batch, dims.input_feature);
  std::swap(dims.kernel_input_feature, dims.kernel_output_feature);
  std::swap(dims.output_batch, dims.output_feature);
  return marked(e, stablehlo::composites::kConvolutionOfW, {x, y}, c,
                [&] { return Values{b.convolution(move_groups(b, x, c.groups, 1), y, dims, window)}; })[0];
}

Dims spatial_dims(Value x) { return Dims(x.dims().begin() + 2, x.dims().end()); }

// The positions of x that windows see. If a stride and a dilation have a common factor, all these positions
// have one remainder by it. Alone they form a smaller x, for a convolution with both divided by the factor.
struct Seen {
  Convolution by;  // the convolution of the smaller x
  Dims first, step, count;
};

// x: the spatial size of x.
Seen seen_positions(const Convolution& c, const Dims& x) {
  Seen seen{c, {}, {}, {}};
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t step = std::gcd(c.stride[i], c.dilation[i]), first = (step - c.padding[i] % step) % step;
    if (first >= x[i]) step = 1, first = 0;  // no position is seen
    seen.by.stride[i] /= step, seen.by.dilation[i] /= step;
    seen.by.padding[i] = (c.padding[i] + first) / step;
    seen.first.push_back(first);
    seen.step.push_back(step);
    seen.count.push_back((x[i] - first + step - 1) / step);
  }
  return seen;
}

// Returns the seen positions of x [N, C, spatial…].
Value only_seen(Builder& b, const Seen& seen, Value x) {
  if (seen.count == spatial_dims(x)) return x;
  Dims first = {0, 0}, step = {1, 1};
  first.insert(first.end(), seen.first.begin(), seen.first.end());
  step.insert(step.end(), seen.step.begin(), seen.step.end());
  return b.slice(x, first, x.dims(), step);
}

// Does the opposite: returns x of this spatial size, with zeros at the positions that no window sees.
Value with_unseen(Builder& b, const Seen& seen, Value x, const Dims& size) {
  if (seen.count == size) return x;
  Dims low = {0, 0}, high = {0, 0}, interior = {0, 0};
  for (size_t i = 0; i < size.size(); ++i) {
    low.push_back(seen.first[i]);
    high.push_back(size[i] - seen.first[i] - (seen.count[i] - 1) * seen.step[i] - 1);
    interior.push_back(seen.step[i] - 1);
  }
  return b.pad(x, b.splat(0, Type{x.dtype(), {}}), low, high, interior);
}

// Returns the spatial size of the call's result.
Dims output_size(Emit& e, const Convolution& c, Value input, Value weight) {
  Dims out;
  for (int64_t i = 0; i < c.spatial; ++i) {
    const int64_t in = input.dim(i + 2), kernel = c.dilation[at(i)] * (weight.dim(i + 2) - 1) + 1;
    const int64_t stride = c.stride[at(i)], padding = c.padding[at(i)];
    const int64_t padded = in + 2 * padding - kernel;
    e.check(stride >= 1, base::str("expected a stride of 1 or more, found ", stride));
    e.check(c.transposed || padded >= 0,
            base::str("expected a padded input of at least ", kernel, " elements in spatial dimension ", i,
                      ", found ", in + 2 * padding, " (", in_words(input), ")"));
    out.push_back(c.transposed ? (in - 1) * stride - 2 * padding + kernel + c.output_padding[at(i)]
                               : padded / stride + 1);
  }
  return out;
}

Values convolution(Emit& e) {
  Builder& b = e.b;
  const Value input = e.tensor("input"), weight = e.tensor("weight");
  const Convolution c = read(e, input, weight);
  const Dims out = output_size(e, c, input, weight);
  const Seen seen = seen_positions(c, c.transposed ? out : spatial_dims(input));
  const Value product = c.transposed
                            ? with_unseen(b, seen, spread_form(e, seen.by, input, weight, seen.count), out)
                            : gather_form(e, seen.by, only_seen(b, seen, input), weight, out);
  if (!e.has("bias")) return {product};
  const DType compute = compute_type(product.dtype());
  const Value bias = b.broadcast_in_dim(to(b, e.tensor("bias"), compute), product.dims(), {1});
  return {to(b, b.add(to(b, product, compute), bias), product.dtype())};
}

Values convolution_backward(Emit& e) {
  Builder& b = e.b;
  const Value grad = e.tensor("grad_output"), input = e.tensor("input"), weight = e.tensor("weight");
  const Convolution c = read(e, input, weight);
  const Dims& mask = e.ints("output_mask");
  // The x and y of the three forms.
  const Value all_of_x = c.transposed ? grad : input, y = c.transposed ? input : grad;
  const Seen seen = seen_positions(c, spatial_dims(all_of_x));
  const Value x = only_seen(b, seen, all_of_x);
  Value grad_input, grad_weight, grad_bias;
  const auto gradients = [&] {
    Values made;
    if (mask.at(0) != 0)
      made.push_back(grad_input = c.transposed ? gather_form(e, seen.by, x, weight, spatial_dims(y))
                                               : spread_form(e, seen.by, y, weight, seen.count));
    if (mask.at(1) != 0) made.push_back(grad_weight = weight_form(e, seen.by, x, y, spatial_dims(weight)));
    return made;
  };
  if (!c.transposed && mask.at(0) != 0 && mask.at(1) != 0)
    marked(e, stablehlo::composites::kConvolutionGradients, {x, weight, y}, seen.by, gradients);
  else
    gradients();
  if (grad_input && !c.transposed) grad_input = with_unseen(b, seen, grad_input, spatial_dims(input));
  if (mask.at(2) != 0) {
    Dims dims = range(0, grad.rank());
    dims.erase(dims.begin() + 1);
    grad_bias = to(b, b.reduce_sum(to(b, grad, compute_type(grad.dtype())), dims), grad.dtype());
  }
  return {grad_input, grad_weight, grad_bias};
}

constexpr Row kConvolutionRows[] = {
    {.name = "aten::convolution_overrideable", .emit = convolution},
    {.name = "aten::convolution_backward_overrideable", .emit = convolution_backward},
};

}  // namespace

std::span<const Row> convolution_rows() { return kConvolutionRows; }

}  // namespace sluice::ops
