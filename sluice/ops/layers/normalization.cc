// Batch, layer and group normalization and their gradients.
//
// Variances are computed in two passes (the mean first, then the squared distances from it): the one-pass
// formula E[x²] - E[x]² loses all digits if the mean is large. The mean itself is computed from distances to
// an element, as in `centre` (common.h). Statistics of bf16 and f16 inputs are computed in f32; they are
// returned in the parameters' type, as LibTorch does (f32 with f32 weights).
#include <algorithm>

#include "sluice/base/text/join.h"
#include "sluice/ops/collective.h"
#include "sluice/ops/common.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::ops {
namespace {

namespace composites = stablehlo::composites;

// Returns the type of the returned statistics: the parameters' type if there are parameters.
DType statistics_type(Emit& e, DType input) {
  for (std::string_view name : {"weight", "bias", "running_mean", "running_var"})
    if (const Value parameter = e.tensor_or_empty(name)) return parameter.dtype();
  return input;
}

int64_t elements(Value x, const Dims& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= x.dim(d);
  return count;
}

Dims other_dims(int64_t rank, const Dims& dims) {
  Dims others;
  for (int64_t d = 0; d < rank; ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) others.push_back(d);
  return others;
}

Value divided(Builder& b, Value x, int64_t count) { return b.divide(x, b.splat(count, x.type())); }

// Returns 1 / sqrt(variance + eps).
Value inverse_deviation(Emit& e, Value variance) {
  return e.b.rsqrt(e.b.add(variance, e.scalar("eps", variance.dtype(), variance.dims())));
}

// Mean and (biased) variance over `dims`, with those dims removed, and x - mean.
struct Moments {
  Value mean, variance, centered;
};

Moments moments(Builder& b, Value x, const Dims& dims) {
  const Centred c = centre(b, x, dims, /*infinite=*/true);
  const Value squares = b.reduce_sum(b.multiply(c.distances, c.distances), dims);
  return {c.mean, divided(b, squares, elements(x, dims)), c.distances};
}

// Returns x * weight + bias; each of the two is optional and has the dimensions `dims`.
Value scale_and_shift(Emit& e, Value x, const Dims& dims) {
  Builder& b = e.b;
  if (const Value weight = e.tensor_or_empty("weight"))
    x = b.multiply(x, b.broadcast_in_dim(to(b, weight, x.dtype()), x.dims(), dims));
  if (const Value bias = e.tensor_or_empty("bias"))
    x = b.add(x, b.broadcast_in_dim(to(b, bias, x.dtype()), x.dims(), dims));
  return x;
}

// ---- Batch normalization: statistics of each channel (dimension 1) ----

Dims all_but_channels(Emit& e, Value x) {
  e.check(x.rank() >= 2, base::str("expected an input of at least 2 dimensions, found ", in_words(x)));
  return other_dims(x.rank(), {1});
}

// Returns whether the statistics are over all replicas' batches (SyncBatchNorm).
bool synced(Emit& e) { return e.over_replicas() && e.replicas().count > 1; }

// Returns the values' means over all replicas, in one collective, if `synced`.
Values synced_means(Emit& e, const Values& means) {
  return synced(e) ? all_reduce(e, means, Reduction::kMean) : means;
}

// Returns the moments over all replicas' batches. A replica's distances from the common mean have a mean of
// their own.
Moments synced_moments(Emit& e, Value x, const Dims& dims) {
  Builder& b = e.b;
  const Moments local = moments(b, x, dims);
  const Value mean = synced_means(e, {local.mean})[0], away = b.subtract(local.mean, mean);
  const Value square = b.add(local.variance, b.multiply(away, away));
  return {mean, synced_means(e, {square})[0], Value()};
}

// Returns the parameter of that name in the type in which the operation computes; empty if it is missing.
Value parameter(Emit& e, std::string_view name, DType dtype) {
  const Value found = e.tensor_or_empty(name);
  return found ? to(e.b, found, dtype) : found;
}

// The statistics that batch normalization takes from a batch or from its running statistics. running_mean and
// running_var: the new running statistics, empty if nothing is to be written.
struct BatchStatistics {
  Value mean, inverse, running_mean, running_var;
};

// Returns old * (1 - factor) + value * factor, in old's type; empty without an old value.
Value moved(Builder& b, Value old, Value value, Value factor) {
  if (!old) return {};
  const Value momentum = b.broadcast(factor, value.dims());
  const Value kept = b.multiply(to(b, old, value.dtype()), b.subtract(number_like(b, 1, momentum), momentum));
  return to(b, b.add(kept, b.multiply(value, momentum)), old.dtype());
}

BatchStatistics batch_statistics(Emit& e, Value x, const Dims& reduced) {
  Builder& b = e.b;
  const Value old_mean = e.tensor_or_empty("running_mean"), old_var = e.tensor_or_empty("running_var");
  const Value momentum = old_mean || old_var ? e.scalar("momentum", x.dtype()) : Value();
  const auto of_batch = [&] {
    const Moments m = synced(e) ? synced_moments(e, x, reduced) : moments(b, x, reduced);
    return Values{m.mean, m.variance, inverse_deviation(e, m.variance)};
  };
  const auto add_running = [&](Values& made) {
    const auto count = static_cast<double>(elements(x, reduced) * (synced(e) ? e.replicas().count : 1));
    const Value unbiased = b.multiply(made[1], number_like(b, count / (count - 1), made[1]));
    if (old_mean) made.push_back(moved(b, old_mean, made[0], momentum));
    if (old_var) made.push_back(moved(b, old_var, unbiased, momentum));
  };
  // The composite includes the running statistics if these have the type of the computation.
  const bool with_running =
      old_mean && old_var && old_mean.dtype() == x.dtype() && old_var.dtype() == x.dtype();
  const auto statistics = [&] {
    Values made = of_batch();
    if (with_running) add_running(made);
    return made;
  };
  const Values operands =
      with_running ? Values{x, momentum, old_mean, old_var} : Values{x, Value(), Value(), Value()};
  Values made = synced(e) ? statistics()
                          : b.composite(composites::kBatchNormStatistics, operands,
                                        {{"eps", e.number("eps")}}, statistics);
  if (!with_running) add_running(made);
  return {made[0], made[2], old_mean ? made[3] : Value(), old_var ? made.back() : Value()};
}

BatchStatistics kept_statistics(Emit& e, DType dtype) {
  return {to(e.b, e.tensor("running_mean"), dtype),
          inverse_deviation(e, to(e.b, e.tensor("running_var"), dtype)),
          {},
          {}};
}

// Results: output, mean, inverse deviation (both empty tensors outside training), new running mean and
// variance (no values if nothing is to be written).
Values batch_norm(Emit& e) {
  Builder& b = e.b;
  const Value input = e.tensor("input"), x = to(b, input, compute_type(input.dtype()));
  const Dims reduced = all_but_channels(e, input);
  const DType statistics = statistics_type(e, input.dtype());
  const bool training = e.boolean("training");
  const BatchStatistics s = training ? batch_statistics(e, x, reduced) : kept_statistics(e, x.dtype());
  const Value weight = parameter(e, "weight", x.dtype()), bias = parameter(e, "bias", x.dtype());
  auto along_channels = [&](Value v) { return b.broadcast_in_dim(v, x.dims(), {1}); };
  const auto normalized = [&] {
    const Value factor = weight ? b.multiply(s.inverse, weight) : s.inverse;
    const Value scaled = b.multiply(b.subtract(x, along_channels(s.mean)), along_channels(factor));
    return Values{bias ? b.add(scaled, along_channels(bias)) : scaled};
  };
  const Value y =
      to(b, b.composite(composites::kBatchNorm, {x, s.mean, s.inverse, weight, bias}, {}, normalized)[0],
         input.dtype());
  if (!training) {
    const Value none = zeros(b, Type{statistics, {0}});
    return {y, none, none, {}, {}};
  }
  return {y, to(b, s.mean, statistics), to(b, s.inverse, statistics), s.running_mean, s.running_var};
}

Values batch_norm_without_statistics(Emit& e) {
  Values results = batch_norm(e);
  results.resize(3);
  return results;
}

Values batch_norm_backward(Emit& e) {
  Builder& b = e.b;
  const Value input = e.tensor("input"), grad_out = e.tensor("grad_out");
  const DType compute = compute_type(input.dtype());
  const Value x = to(b, input, compute), grad = to(b, grad_out, compute);
  const Dims reduced = all_but_channels(e, input);
  const bool train = e.boolean("train");
  const Value mean = to(b, e.tensor(train ? "save_mean" : "running_mean"), compute);
  const Value inverse = train ? to(b, e.tensor("save_invstd"), compute)
                              : inverse_deviation(e, to(b, e.tensor("running_var"), compute));
  auto along_channels = [&](Value v) { return b.broadcast_in_dim(v, x.dims(), {1}); };
  const Value normalized = b.multiply(b.subtract(x, along_channels(mean)), along_channels(inverse));
  const Values sums = b.composite(composites::kBatchNormSums, {grad, x, mean, inverse}, {}, [&] {
    const Value sum_of_grad = b.reduce_sum(grad, reduced);
    return Values{sum_of_grad, b.reduce_sum(b.multiply(grad, normalized), reduced)};
  });
  const Value sum = sums[0], product = sums[1];

  const DType parameters = statistics_type(e, input.dtype());
  const Dims& mask = e.ints("output_mask");
  Value grad_input;
  if (mask.at(0) != 0) {
    const Value weight = parameter(e, "weight", compute);
    const Value factor = weight ? b.multiply(inverse, weight) : inverse;
    if (train) {
      // The factor is the reciprocal: with a divisor, the compiler would divide for each element of x.
      const Value part = number_like(b, 1.0 / static_cast<double>(elements(x, reduced)), sum);
      const Values means = synced_means(e, {b.multiply(sum, part), b.multiply(product, part)});
      grad_input = b.composite(composites::kBatchNormGradient,
                               {grad, x, mean, inverse, weight, means[0], means[1]}, {}, [&] {
                                 Value rest = b.subtract(grad, along_channels(means[0]));
                                 rest = b.subtract(rest, b.multiply(normalized, along_channels(means[1])));
                                 return Values{b.multiply(rest, along_channels(factor))};
                               })[0];
    } else {
      grad_input = b.multiply(grad, along_channels(factor));
    }
    grad_input = to(b, grad_input, input.dtype());
  }
  return {grad_input, mask.at(1) != 0 ? to(b, product, parameters) : Value{},
          mask.at(2) != 0 ? to(b, sum, parameters) : Value{}};
}

// ---- Layer and group normalization: statistics of parts of each sample ----

// The normalized x, computed again from the kept statistics: (x - mean) * rstd. `mean` is its mean over
// `dims`, in x's dims: an error from the rounding of the kept mean.
struct Normalized {
  Value raw, mean;
  Value exact(Builder& b) const { return b.subtract(raw, mean); }
};

Value mean_over(Builder& b, Value x, const Dims& dims) {
  return b.broadcast_in_dim(divided(b, b.reduce_sum(x, dims), elements(x, dims)), x.dims(),
                            other_dims(x.rank(), dims));
}

Normalized normalized_again(Builder& b, Value x, Value mean, Value rstd, const Dims& dims) {
  const Value raw = b.multiply(b.subtract(x, mean), rstd);
  return {raw, mean_over(b, raw, dims)};
}

// Returns rstd * (grad - mean(grad) - exact * mean(grad * exact)), with means over `dims`. None of the three
// means depends on another, so that one pass computes all of them.
Value normalized_gradient(Builder& b, Value grad, const Normalized& n, Value rstd, const Dims& dims) {
  const Value shift = mean_over(b, grad, dims);
  const Value slope = b.subtract(mean_over(b, b.multiply(grad, n.raw), dims), b.multiply(n.mean, shift));
  const Value rest = b.subtract(b.subtract(grad, shift), b.multiply(n.exact(b), slope));
  return b.multiply(rest, rstd);
}

// Returns the dimensions that layer normalization runs over: the last ones.
Dims layer_dims(Emit& e, Value input) {
  const Dims& shape = e.ints("normalized_shape");
  const int64_t first = input.rank() - static_cast<int64_t>(shape.size());
  e.check(first >= 0 && std::equal(shape.begin(), shape.end(), input.dims().begin() + first),
          base::str("expected an input whose last dimensions are [", base::join(shape, ", "), "], found ",
                    in_words(input)));
  return other_dims(input.rank(), other_dims(first, {}));
}

Values layer_norm(Emit& e) {
  Builder& b = e.b;
  const Value input = e.tensor("input"), x = to(b, input, compute_type(input.dtype()));
  const Dims reduced = layer_dims(e, input), kept = other_dims(x.rank(), reduced);
  const DType statistics = statistics_type(e, input.dtype());
  Dims dims = x.dims();
  for (int64_t d : reduced) dims[static_cast<size_t>(d)] = 1;
  return b.composite(composites::kLayerNorm, {input, e.tensor_or_empty("weight"), e.tensor_or_empty("bias")},
                     {{"columns", e.ints("normalized_shape")}, {"eps", e.number("eps")}}, [&] {
                       const Moments m = moments(b, x, reduced);
                       const Value rstd = inverse_deviation(e, m.variance);
                       const Value y = scale_and_shift(
                           e, b.multiply(m.centered, b.broadcast_in_dim(rstd, x.dims(), kept)), reduced);
                       Values made = {to(b, y, input.dtype())};
                       for (Value of_rows : {m.mean, rstd})
                         made.push_back(b.reshape(to(b, of_rows, statistics), dims));
                       return made;
                     });
}

Values layer_norm_backward(Emit& e) {
  Builder& b = e.b;
  const Value input = e.tensor("input"), weight = e.tensor_or_empty("weight");
  const DType compute = compute_type(input.dtype()), parameters = statistics_type(e, input.dtype());
  const Value x = to(b, input, compute), grad = to(b, e.tensor("grad_out"), compute);
  const Dims reduced = layer_dims(e, input), kept = other_dims(x.rank(), reduced);
  const Dims& mask = e.ints("output_mask");
  // Returns the gradients that are wanted.
  const auto gradients = [&] {
    const Value rstd = b.broadcast(to(b, e.tensor("rstd"), compute), x.dims());
    const Value mean = b.broadcast(to(b, e.tensor("mean"), compute), x.dims());
    const Normalized normalized = normalized_again(b, x, mean, rstd, reduced);
    Values made;
    if (mask.at(0) != 0) {
      const Value scaled =
          weight ? b.multiply(grad, b.broadcast_in_dim(to(b, weight, compute), x.dims(), reduced)) : grad;
      made.push_back(to(b, normalized_gradient(b, scaled, normalized, rstd, reduced), input.dtype()));
    }
    if (mask.at(1) != 0)
      made.push_back(to(b, b.reduce_sum(b.multiply(grad, normalized.exact(b)), kept), parameters));
    if (mask.at(2) != 0) made.push_back(to(b, b.reduce_sum(grad, kept), parameters));
    return made;
  };
  Values made;
  if (mask.at(0) == 0)
    made = gradients();
  else
    made = b.composite(
        composites::kLayerNormGradient,
        {e.tensor("grad_out"), input, e.tensor("mean"), e.tensor("rstd"), weight},
        {{"columns", e.ints("normalized_shape")}, {"weight", mask.at(1)}, {"bias", mask.at(2)}}, gradients);
  Values results(3);
  auto next = made.begin();
  for (size_t i = 0; i < results.size(); ++i)
    if (mask.at(i) != 0) results[i] = *next++;
  return results;
}

// Returns [N, groups, channels of a group, positions].
Dims group_dims(Emit& e, Value input) {
  const int64_t n = e.integer("N"), channels = e.integer("C"), positions = e.integer("HxW"),
                groups = e.integer("group");
  e.check(
      groups >= 1 && channels % groups == 0 && input.type().numel() == n * channels * positions,
      base::str("expected ", channels, " channels that ", groups, " groups divide, found ", in_words(input)));
  return {n, groups, channels / groups, positions};
}

Value grouped_weight(Emit& e, Value weight, DType dtype, const Dims& dims) {
  return e.b.broadcast_in_dim(e.b.reshape(to(e.b, weight, dtype), {dims[1], dims[2]}), dims, {1, 2});
}

Values group_norm(Emit& e) {
  Builder& b = e.b;
  const Value input = e.tensor("input");
  const DType statistics = statistics_type(e, input.dtype());
  const Dims dims = group_dims(e, input);
  const Value x = b.reshape(to(b, input, compute_type(input.dtype())), dims);
  const Moments m = moments(b, x, {2, 3});
  const Value rstd = inverse_deviation(e, m.variance);
  Value y = b.multiply(m.centered, b.broadcast_in_dim(rstd, dims, {0, 1}));
  if (const Value weight = e.tensor_or_empty("weight"))
    y = b.multiply(y, grouped_weight(e, weight, x.dtype(), dims));
  if (const Value bias = e.tensor_or_empty("bias")) y = b.add(y, grouped_weight(e, bias, x.dtype(), dims));
  return {b.reshape(to(b, y, input.dtype()), input.dims()), to(b, m.mean, statistics),
          to(b, rstd, statistics)};
}

Values group_norm_backward(Emit& e) {
  Builder& b = e.b;
  const Value input = e.tensor("input");
  const DType compute = compute_type(input.dtype()), parameters = statistics_type(e, input.dtype());
  const Dims dims = group_dims(e, input);
  const Value x = b.reshape(to(b, input, compute), dims);
  const Value grad = b.reshape(to(b, e.tensor("grad_out"), compute), dims);
  auto along_groups = [&](std::string_view name) {
    return b.broadcast_in_dim(b.reshape(to(b, e.tensor(name), compute), {dims[0], dims[1]}), dims, {0, 1});
  };
  const Value rstd = along_groups("rstd");
  const Normalized normalized = normalized_again(b, x, along_groups("mean"), rstd, {2, 3});
  const Dims& mask = e.ints("output_mask");
  const Dims channels = {dims[1] * dims[2]};
  Value grad_input, grad_weight, grad_bias;
  if (mask.at(0) != 0) {
    Value scaled = grad;
    if (const Value weight = e.tensor_or_empty("weight"))
      scaled = b.multiply(scaled, grouped_weight(e, weight, compute, dims));
    const Value result = normalized_gradient(b, scaled, normalized, rstd, {2, 3});
    grad_input = b.reshape(to(b, result, input.dtype()), input.dims());
  }
  if (mask.at(1) != 0)
    grad_weight =
        b.reshape(to(b, b.reduce_sum(b.multiply(grad, normalized.exact(b)), {0, 3}), parameters), channels);
  if (mask.at(2) != 0) grad_bias = b.reshape(to(b, b.reduce_sum(grad, {0, 3}), parameters), channels);
  return {grad_input, grad_weight, grad_bias};
}

// A weight as a direction and a length: w = v g / |v|, with one norm for each place of `dim`.
struct WeightNorm {
  Value v, g;   // in the compute type, in v's dims
  Value norms;  // one for each place of `dim`
  Dims others;  // all dims but `dim`
  int64_t dim = 0;
  Value along(Builder& b, Value places) const { return b.broadcast_in_dim(places, v.dims(), {dim}); }
};

WeightNorm weight_norm_of(Emit& e, std::string_view v_name, std::string_view g_name, Value norms) {
  Builder& b = e.b;
  const Value v = e.tensor(v_name);
  const int64_t dim = e.integer("dim");
  e.check(dim == 0 || dim == v.rank() - 1,
          base::str("expected dim 0 or ", v.rank() - 1, " (the first or the last), found ", dim));
  const DType compute = compute_type(v.dtype());
  WeightNorm w;
  w.v = to(b, v, compute);
  w.others = other_dims(v.rank(), {dim});
  w.dim = dim;
  auto places = [&](Value x) { return b.reshape(to(b, x, compute), {v.dim(dim)}); };
  w.g = w.along(b, places(e.tensor(g_name)));
  w.norms = norms ? places(norms) : p_norm(b, w.v, 2, w.others);
  return w;
}

// Norms of bf16 and f16 are returned in f32, in g's dims.
Values weight_norm(Emit& e) {
  Builder& b = e.b;
  const WeightNorm w = weight_norm_of(e, "v", "g", {});
  const Value result = b.multiply(w.v, b.divide(w.g, w.along(b, w.norms)));
  return {to(b, result, e.tensor("v").dtype()), b.reshape(w.norms, e.tensor("g").dims())};
}

// d/dg = grad · v / |v|, d/dv = g / |v| (grad - v / |v| d/dg)
Values weight_norm_backward(Emit& e) {
  Builder& b = e.b;
  const Value v = e.tensor("saved_v"), g = e.tensor("saved_g");
  const WeightNorm w = weight_norm_of(e, "saved_v", "saved_g", e.tensor("saved_norms"));
  const Value grad = to(b, e.tensor("grad_w"), w.v.dtype()), norms = w.along(b, w.norms);
  const Value direction = b.divide(w.v, norms);
  const Value grad_g = b.reduce_sum(b.multiply(grad, direction), w.others);
  const Value across = b.subtract(grad, b.multiply(direction, w.along(b, grad_g)));
  return {to(b, b.multiply(b.divide(w.g, norms), across), v.dtype()),
          to(b, b.reshape(grad_g, g.dims()), g.dtype())};
}

constexpr Row kNormalizationRows[] = {
    {.name = "aten::_weight_norm_interface", .emit = weight_norm},
    {.name = "aten::_weight_norm_interface_backward", .emit = weight_norm_backward},
    {.name = "aten::native_batch_norm",
     .emit = batch_norm,
     .constants = "eps",
     .writes = "running_mean running_var",
     .statistics = true},
    {.name = "aten::_native_batch_norm_legit",
     .emit = batch_norm,
     .constants = "eps",
     .writes = "running_mean running_var",
     .statistics = true},
    {.name = "aten::_native_batch_norm_legit.no_stats",
     .emit = batch_norm_without_statistics,
     .constants = "eps",
     .statistics = true},
    {.name = "aten::native_batch_norm_backward",
     .emit = batch_norm_backward,
     .constants = "eps",
     .statistics = true},
    {.name = "aten::native_layer_norm", .emit = layer_norm, .constants = "eps"},
    {.name = "aten::native_layer_norm_backward", .emit = layer_norm_backward},
    {.name = "aten::native_group_norm", .emit = group_norm, .constants = "eps"},
    {.name = "aten::native_group_norm_backward", .emit = group_norm_backward},
};

}  // namespace

std::span<const Row> normalization_rows() { return kNormalizationRows; }

}  // namespace sluice::ops
