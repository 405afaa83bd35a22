// Reductions, and operations that run along a dimension (cumulative sums and similar ones).
#include <cmath>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/ops/special/complex_numbers.h"

namespace sluice::ops {
namespace {

// Returns the dims that a reduction's argument names: None and [] mean all.
Dims reduced_dims(Emit& e, Value x, std::string_view name = "dim") {
  return wrap_dims(e.has(name) ? e.ints(name) : Dims{}, x.rank(), true);
}

bool keeps_dims(Emit& e) { return e.has("keepdim") && e.boolean("keepdim"); }

// Returns a reduced value with its reduced dims as 1s, if the call asks for that.
Value keep_dims(Emit& e, Value reduced, Value x, const Dims& dims) {
  if (!keeps_dims(e)) return reduced;
  Dims kept = x.dims();
  for (int64_t dim : dims) kept[static_cast<size_t>(dim)] = 1;
  return e.b.reshape(reduced, kept);
}

int64_t reduced_count(Value x, const Dims& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= x.dim(dim);
  return count;
}

// ---- sums and means ----

Values sum_over(Emit& e, const Dims& dims) {
  Value x = e.tensor("self");
  const DType dtype = e.dtype("dtype").value_or(sum_type(x.dtype()));
  Value wide = to(e.b, to(e.b, x, dtype), compute_type(dtype));
  return {keep_dims(e, to(e.b, e.b.reduce_sum(wide, dims), dtype), x, dims)};
}
Values sum(Emit& e) { return sum_over(e, reduced_dims(e, e.tensor("self"))); }
Values sum_all(Emit& e) { return sum_over(e, wrap_dims({}, e.tensor("self").rank(), true)); }

Values nansum(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  const Dims dims = reduced_dims(e, x);
  const DType dtype = e.dtype("dtype").value_or(sum_type(x.dtype()));
  Value wide = to(b, to(b, x, dtype), compute_type(dtype));
  wide = b.select(is_nan(b, wide), number_like(b, 0, wide), wide);
  return {keep_dims(e, to(b, b.reduce_sum(wide, dims), dtype), x, dims)};
}

Values mean_over(Emit& e, const Dims& dims) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  const DType dtype = e.dtype("dtype").value_or(x.dtype());
  e.check(stablehlo::is_float(dtype) || stablehlo::is_complex(dtype),
          "the mean of integers needs a float dtype; pass dtype or convert the tensor");
  Value total = b.reduce_sum(to(b, to(b, x, dtype), compute_type(dtype)), dims);
  Value mean = b.divide(total, number_like(b, static_cast<double>(reduced_count(x, dims)), total));
  return {keep_dims(e, to(b, mean, dtype), x, dims)};
}
Values mean(Emit& e) { return mean_over(e, reduced_dims(e, e.tensor("self"))); }
Values mean_all(Emit& e) { return mean_over(e, wrap_dims({}, e.tensor("self").rank(), true)); }

Values prod_over(Emit& e, const Dims& dims) {
  Value x = e.tensor("self");
  const DType dtype = e.dtype("dtype").value_or(sum_type(x.dtype()));
  Value wide = to(e.b, to(e.b, x, dtype), compute_type(dtype));
  return {keep_dims(e, to(e.b, e.b.reduce_product(wide, dims), dtype), x, dims)};
}
Values prod(Emit& e) { return prod_over(e, wrap_dims({e.integer("dim")}, e.tensor("self").rank(), false)); }
Values prod_all(Emit& e) { return prod_over(e, wrap_dims({}, e.tensor("self").rank(), true)); }

Values trace(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  e.check(x.rank() == 2, "expected a matrix");
  const Type index{DType::kS32, x.dims()};
  Value diagonal = b.compare(b.iota(index, 0), b.iota(index, 1), Compare::kEq);
  const DType dtype = sum_type(x.dtype());
  Value wide = to(b, x, compute_type(dtype));
  return {to(b, b.reduce_sum(b.select(diagonal, wide, number_like(b, 0, wide)), {0, 1}), dtype)};
}

Values count_nonzero(Emit& e) {
  Value x = e.tensor("self");
  const Dims dims = reduced_dims(e, x);
  // Counts below 2^31 fit 32 bits, which a device adds faster.
  const bool fits = reduced_count(x, dims) <= INT32_MAX;
  Value flags = to(e.b, to(e.b, x, DType::kPred), fits ? DType::kS32 : DType::kS64);
  return {to(e.b, e.b.reduce_sum(flags, dims), DType::kS64)};
}

// ---- logic ----

// The result is bool, but u8 for u8.
template <Value (Builder::*Fn)(Value, const Dims&)>
Values quantifier(Emit& e, const Dims& dims) {
  Value x = e.tensor("self");
  Value result = keep_dims(e, (e.b.*Fn)(to(e.b, x, DType::kPred), dims), x, dims);
  return {to(e.b, result, x.dtype() == DType::kU8 ? DType::kU8 : DType::kPred)};
}

template <Value (Builder::*Fn)(Value, const Dims&)>
Values quantifier_all(Emit& e) {
  return quantifier<Fn>(e, wrap_dims({}, e.tensor("self").rank(), true));
}
template <Value (Builder::*Fn)(Value, const Dims&)>
Values quantifier_dim(Emit& e) {
  return quantifier<Fn>(e, wrap_dims({e.integer("dim")}, e.tensor("self").rank(), false));
}
// Without dims all are reduced; an empty list reduces no dimension.
template <Value (Builder::*Fn)(Value, const Dims&)>
Values quantifier_dims(Emit& e) {
  return quantifier<Fn>(e, wrap_dims(e.ints("dim"), e.tensor("self").rank(), !e.has("dim")));
}

// ---- extremes ----

void check_not_empty(Emit& e, Value x, const Dims& dims) {
  e.check(reduced_count(x, dims) > 0 || x.type().numel() == 0,
          "expected at least one element along the reduced dimensions, found none");
  for (int64_t dim : dims)
    e.check(x.dim(dim) > 0, "expected at least one element along the reduced dimensions, found none");
}

template <Value (Builder::*Fn)(Value, const Dims&, bool)>
Value extreme(Emit& e, const Dims& dims) {
  Value x = e.tensor("self");
  check_not_empty(e, x, dims);
  return keep_dims(e, (e.b.*Fn)(x, dims, true), x, dims);
}

template <Value (Builder::*Fn)(Value, const Dims&, bool)>
Values extreme_dims(Emit& e) {
  return {extreme<Fn>(e, reduced_dims(e, e.tensor("self")))};
}
template <Value (Builder::*Fn)(Value, const Dims&, bool)>
Values extreme_all(Emit& e) {
  return {extreme<Fn>(e, wrap_dims({}, e.tensor("self").rank(), true))};
}

// Returns whether the first of two (value, position) pairs wins: NaN before everything, then the better
// value, then the lower position.
Value first_wins(Builder& b, Compare better, Value x, Value x_at, Value y, Value y_at) {
  Value wins = b.compare(x, y, better), ties = b.compare(x, y, Compare::kEq);
  if (stablehlo::is_float(x.dtype())) {
    Value x_nan = is_nan(b, x), y_nan = is_nan(b, y);
    wins = b.or_(wins, b.and_(x_nan, b.not_(y_nan)));
    ties = b.or_(ties, b.and_(x_nan, y_nan));
  }
  return b.or_(wins, b.and_(ties, b.compare(x_at, y_at, Compare::kLt)));
}

// Returns the positions of the extremes along one dimension, as i64, without that dimension.
Value position_of_extreme(Builder& b, Value x, int64_t dim, Compare better) {
  const DType dtype = x.dtype() == DType::kPred ? DType::kS32 : x.dtype();
  Value values = to(b, x, dtype);
  const Value pair[] = {values, b.iota(Type{DType::kS32, x.dims()}, dim)};
  Value worst = better == Compare::kGt ? b.lowest(dtype) : b.highest(dtype);
  // The initial position is after all others, so that an element equal to the worst value still wins.
  const Value inits[] = {worst, b.splat(int64_t{INT32_MAX}, Type{DType::kS32, {}})};
  Values best = b.reduce(pair, inits, {dim}, [better](Builder& body, std::span<const Value> v) {
    Value wins = first_wins(body, better, v[0], v[1], v[2], v[3]);
    return Values{body.select(wins, v[0], v[2]), body.select(wins, v[1], v[3])};
  });
  return to(b, best[1], DType::kS64);
}

template <Compare Better>
Values arg_extreme(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  if (x.rank() == 0) return {b.splat(0, Type{DType::kS64, {}})};
  if (!e.has("dim")) {
    e.check(x.type().numel() > 0, "expected at least one element when no dim is given, found none");
    Value at = position_of_extreme(b, b.reshape(x, {x.type().numel()}), 0, Better);
    return {keeps_dims(e) ? b.reshape(at, Dims(static_cast<size_t>(x.rank()), 1)) : at};
  }
  const int64_t dim = wrap_dim(e.integer("dim"), x.rank());
  check_not_empty(e, x, {dim});
  return {keep_dims(e, position_of_extreme(b, x, dim, Better), x, {dim})};
}

// Values and positions are computed separately, so that unused positions cost nothing.
template <Compare Better>
Values extreme_with_positions(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  if (x.rank() == 0) return {x, b.splat(0, Type{DType::kS64, {}})};
  const int64_t dim = wrap_dim(e.integer("dim"), x.rank());
  check_not_empty(e, x, {dim});
  Value best = Better == Compare::kGt ? b.reduce_max(x, {dim}) : b.reduce_min(x, {dim});
  return {keep_dims(e, best, x, {dim}), keep_dims(e, position_of_extreme(b, x, dim, Better), x, {dim})};
}

Values aminmax(Emit& e) {
  Value x = e.tensor("self");
  const Dims dims =
      e.has("dim") ? wrap_dims({e.integer("dim")}, x.rank(), false) : wrap_dims({}, x.rank(), true);
  return {extreme<&Builder::reduce_min>(e, dims), extreme<&Builder::reduce_max>(e, dims)};
}

// ---- variance ----

struct Moments {
  Value mean, distances;  // in the compute type; the mean has the dims that the call asks for
  Dims dims;
  double count;  // the divisor of the squares' sum
  DType dtype;
};

Moments moments(Emit& e) {
  Value x = e.tensor("self");
  e.check(stablehlo::is_float(x.dtype()), "expected a tensor of floats; convert it first");
  const Dims dims = reduced_dims(e, x);
  const double correction = e.has("correction") ? e.number("correction") : 1;
  const auto count = static_cast<double>(reduced_count(x, dims));
  const Centred c = centre(e.b, to(e.b, x, compute_type(x.dtype())), dims);
  return {keep_dims(e, c.mean, x, dims), c.distances, dims, std::max(count - correction, 0.0), x.dtype()};
}

Value mean_square(Builder& b, const Moments& m, Value distances) {
  const Value squares = b.reduce_sum(b.multiply(distances, distances), m.dims);
  return b.divide(squares, number_like(b, m.count, squares));
}

Value variance(Emit& e, const Moments& m) {
  return to(e.b, keep_dims(e, mean_square(e.b, m, m.distances), e.tensor("self"), m.dims), m.dtype);
}

// Squares of f32 beyond 1e19 or below 1e-19 are infinite or lose digits, while LibTorch, which adds in f64,
// has a result. In that case the deviation is computed from scaled distances (Blue (1978)).
Value deviation(Emit& e, const Moments& m) {
  Builder& b = e.b;
  Value square = mean_square(b, m, m.distances), unit = number_like(b, 1, square);
  if (m.distances.dtype() == DType::kF32) {
    const auto scale_where = [&](Value out_of_range, double scale) {
      const Value scaled = b.multiply(m.distances, number_like(b, scale, m.distances));
      square = b.select(out_of_range, mean_square(b, m, scaled), square);
      unit = b.select(out_of_range, number_like(b, 1 / scale, unit), unit);
    };
    const Value tiny = is_less(b, square, 0x1p-80), huge = is_equal(b, square, INFINITY);
    scale_where(tiny, 0x1p60);  // the factor's square must be finite: XLA may multiply by it
    scale_where(huge, 0x1p-70);
  }
  return to(b, keep_dims(e, b.multiply(b.sqrt(square), unit), e.tensor("self"), m.dims), m.dtype);
}

Values var(Emit& e) { return {variance(e, moments(e))}; }
Values std_(Emit& e) { return {deviation(e, moments(e))}; }
Values var_mean(Emit& e) {
  const Moments m = moments(e);
  return {variance(e, m), to(e.b, m.mean, m.dtype)};
}
Values std_mean(Emit& e) {
  const Moments m = moments(e);
  return {deviation(e, m), to(e.b, m.mean, m.dtype)};
}

// ---- norms ----

Values norm_of(Emit& e, double p, const Dims& dims) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  const DType dtype = stablehlo::real_dtype(e.dtype("dtype").value_or(x.dtype()));
  // A norm depends only on the absolute values.
  if (stablehlo::is_complex(x.dtype())) x = special::magnitude(b, x);
  e.check(stablehlo::is_float(x.dtype()) && stablehlo::is_float(dtype),
          base::str("expected a tensor of floats, found ", in_words(x), "; convert it first"));
  if (p == INFINITY) {
    // |x| is never below 0, and the norm of no elements is 0.
    Value size = b.abs(to(b, x, dtype));
    return {keep_dims(e, reduced_count(x, dims) == 0 ? b.reduce_sum(size, dims) : b.reduce_max(size, dims), x,
                      dims)};
  }
  return {
      keep_dims(e, to(b, p_norm(b, to(b, to(b, x, dtype), compute_type(dtype)), p, dims), dtype), x, dims)};
}

Values vector_norm(Emit& e) { return norm_of(e, e.number("ord"), reduced_dims(e, e.tensor("self"))); }
Values norm(Emit& e) { return norm_of(e, e.has("p") ? e.number("p") : 2, reduced_dims(e, e.tensor("self"))); }
Values norm_all(Emit& e) {
  return norm_of(e, e.has("p") ? e.number("p") : 2, wrap_dims({}, e.tensor("self").rank(), true));
}

Values logsumexp(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  const Dims dims = wrap_dims(e.ints("dim"), x.rank(), true);
  const DType dtype = e.promote_float({"self"});
  Value wide = to(b, x, compute_type(dtype));
  Dims kept = x.dims();
  for (int64_t dim : dims) kept[static_cast<size_t>(dim)] = 1;
  Value top = b.reduce_max(wide, dims);
  // An infinite maximum would give inf - inf.
  top = b.select(is_equal(b, b.abs(top), INFINITY), number_like(b, 0, top), top);
  Value total = b.reduce_sum(b.exp(b.subtract(wide, b.broadcast(b.reshape(top, kept), x.dims()))), dims);
  return {keep_dims(e, to(b, b.add(b.log(total), top), dtype), x, dims)};
}

// ---- along a dimension ----

template <Running Kind>
Values cumulative(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  const DType dtype = e.dtype("dtype").value_or(sum_type(x.dtype()));
  Value wide = to(b, to(b, x, dtype), compute_type(dtype));
  return {to(b, running(b, wide, wrap_dim(e.integer("dim"), x.rank()), Kind), dtype)};
}

// Repeats x, which lacks the dimension `dim` of these dims, along it.
Value spread_along(Builder& b, Value x, const Dims& dims, int64_t dim) {
  Dims kept;
  for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i)
    if (i != dim) kept.push_back(i);
  return b.broadcast_in_dim(x, dims, kept);
}

// Returns the first place along `dim` that has the property, without that dimension; its size if none has.
Value first_place(Builder& b, Value has, Value places, int64_t dim) {
  return b.reduce_min(b.select(has, places, number_like(b, static_cast<double>(has.dim(dim)), places)),
                      {dim});
}

// The gradient of each row's first zero: the product before it, times the sum of grad times the product of
// what follows it, up to the row's second zero. `after`: where that is, from the first zero on.
Value gradient_of_zero(Builder& b, Value grad, Value x, Value y, Value after, Value first, int64_t dim) {
  const auto d = static_cast<size_t>(dim);
  const Value none = number_like(b, 0, x), one = number_like(b, 1, x);
  const Value factors = b.select(b.and_(after, b.not_(first)), x, one);
  const Value products = running(b, factors, dim, Running::kProduct);
  const Value later = b.reduce_sum(b.multiply(products, b.select(after, grad, none)), {dim});
  Dims low(x.dims().size(), 0), high = low;
  low[d] = 1;
  high[d] = -1;
  const Value ahead =
      b.pad(y, b.splat(1, Type{x.dtype(), {}}), low, high);  // the product before each element
  return b.multiply(later, b.reduce_sum(b.select(first, ahead, none), {dim}));
}

// The gradient of y = cumprod(x), as LibTorch computes it: for x[k], it is the sum of grad[i] y[i] / x[k]
// over i >= k, up to the row's first zero. What follows the first zero has no gradient.
Value product_gradient(Builder& b, Value grad, Value x, Value y, int64_t dim) {
  const Value places = b.iota(Type{DType::kS32, x.dims()}, dim), is_zero = is_equal(b, x, 0);
  const Value zero_at = first_place(b, is_zero, places, dim), zero = spread_along(b, zero_at, x.dims(), dim);
  const Value before = b.compare(places, zero, Compare::kLt), first = b.compare(places, zero, Compare::kEq);
  const Value none = number_like(b, 0, x);
  const Value sums = running(b, b.select(before, b.multiply(y, grad), none), dim, Running::kSum,
                             /*from_end=*/true);
  const Value found = b.reduce_or(is_less(b, zero_at, static_cast<double>(x.dim(dim))), all_dims(zero_at));
  const Value of_zero = b.if_(
      found,
      [&](Builder& b, std::span<const Value>) {
        const Value later = b.compare(places, zero, Compare::kGt);
        const Value second = first_place(b, b.and_(is_zero, later), places, dim);
        const Value after =
            b.and_(b.not_(before), b.compare(places, spread_along(b, second, x.dims(), dim), Compare::kLt));
        return Values{gradient_of_zero(b, grad, x, y, after, first, dim)};
      },
      [&](Builder& b, std::span<const Value>) {
        return Values{zeros(b, Type{x.dtype(), zero_at.dims()})};
      })[0];
  return b.select(before, b.divide(sums, x), b.select(first, spread_along(b, of_zero, x.dims(), dim), none));
}

Values cumprod_backward(Emit& e) {
  const Value input = e.tensor("input");
  const DType dtype = input.dtype();
  const int64_t dim = wrap_dim(e.integer("dim"), input.rank());
  for (const char* name : {"grad", "output"})
    if (!stablehlo::is_float(dtype) || e.tensor(name).type() != input.type())
      throw_error(Code::kUnimplemented, "the row takes floats of one type and shape");
  if (input.rank() == 0 || input.dim(dim) <= 1) return {e.tensor("grad")};
  const Values v = operands(e, compute_type(dtype), {"grad", "input", "output"});
  return {to(e.b, product_gradient(e.b, v[0], v[1], v[2], dim), dtype)};
}

// Returns the extreme so far and its position; the last of equal elements wins, and a NaN stays.
template <Compare Better>
Values cumulative_extreme(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  if (x.rank() == 0) return {x, b.splat(0, Type{DType::kS64, {}})};
  const int64_t dim = wrap_dim(e.integer("dim"), x.rank());
  const DType dtype = x.dtype() == DType::kPred ? DType::kU8 : x.dtype();
  Value positions = b.iota(Type{DType::kS32, x.dims()}, dim);
  const Values fill = {Better == Compare::kGe ? b.lowest(dtype) : b.highest(dtype),
                       b.splat(int64_t{-1}, Type{DType::kS32, {}})};
  const Values result = scan(b, {to(b, x, dtype), positions}, fill, dim,
                             [](Builder& body, const Values& earlier, const Values& later) {
                               Value later_wins = body.compare(later[0], earlier[0], Better);
                               if (stablehlo::is_float(later[0].dtype()))
                                 later_wins = body.or_(later_wins, is_nan(body, later[0]));
                               return Values{body.select(later_wins, later[0], earlier[0]),
                                             body.select(later_wins, later[1], earlier[1])};
                             });
  return {to(b, result[0], x.dtype()), to(b, result[1], DType::kS64)};
}

Values logcumsumexp(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  e.check(stablehlo::is_float(x.dtype()), "expected a tensor of floats; convert it first");
  Value wide = to(b, x, compute_type(x.dtype()));
  const Values result =
      scan(b, {wide}, {b.lowest(wide.dtype())}, wrap_dim(e.integer("dim"), x.rank()),
           [](Builder& body, const Values& earlier, const Values& later) {
             Value u = earlier[0], v = later[0], top = body.maximum(u, v);
             Value gap = body.negate(body.abs(body.subtract(u, v)));
             Value same = body.and_(body.compare(u, v, Compare::kEq), is_equal(body, body.abs(u), INFINITY));
             return Values{body.select(same, u, body.add(top, body.log1p(body.exp(gap))))};
           });
  return {to(b, result[0], x.dtype())};
}

// Scales down the sub-tensors along `dim` whose norm is above maxnorm, to that norm.
Values renorm(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  const int64_t dim = wrap_dim(e.integer("dim"), x.rank());
  Dims others;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != dim) others.push_back(i);
  Value wide = to(b, x, compute_type(x.dtype()));
  Value size = p_norm(b, wide, e.number("p"), others);
  Value limit = e.scalar("maxnorm", size.dtype(), size.dims());
  Value shrink = b.divide(limit, b.add(size, number_like(b, 1e-7, size)));
  Value factor = b.select(b.compare(size, limit, Compare::kGt), shrink, number_like(b, 1, size));
  return {to(b, b.multiply(wide, b.broadcast_in_dim(factor, x.dims(), {dim})), x.dtype())};
}

const Row kReduceRows[] = {
    {.name = "aten::all", .emit = quantifier_all<&Builder::reduce_and>},
    {.name = "aten::all.dim", .emit = quantifier_dim<&Builder::reduce_and>},
    {.name = "aten::all.dims", .emit = quantifier_dims<&Builder::reduce_and>},
    {.name = "aten::amax", .emit = extreme_dims<&Builder::reduce_max>},
    {.name = "aten::amin", .emit = extreme_dims<&Builder::reduce_min>},
    {.name = "aten::aminmax", .emit = aminmax},
    {.name = "aten::any", .emit = quantifier_all<&Builder::reduce_or>},
    {.name = "aten::any.dim", .emit = quantifier_dim<&Builder::reduce_or>},
    {.name = "aten::any.dims", .emit = quantifier_dims<&Builder::reduce_or>},
    {.name = "aten::argmax", .emit = arg_extreme<Compare::kGt>},
    {.name = "aten::argmin", .emit = arg_extreme<Compare::kLt>},
    {.name = "aten::count_nonzero.dim_IntList", .emit = count_nonzero},
    {.name = "aten::cummax", .emit = cumulative_extreme<Compare::kGe>},
    {.name = "aten::cummin", .emit = cumulative_extreme<Compare::kLe>},
    {.name = "aten::cumprod", .emit = cumulative<Running::kProduct>},
    {.name = "aten::cumprod_backward", .emit = cumprod_backward},
    {.name = "aten::cumsum", .emit = cumulative<Running::kSum>},
    {.name = "aten::linalg_vector_norm", .emit = vector_norm, .constants = "ord"},
    {.name = "aten::logcumsumexp", .emit = logcumsumexp},
    {.name = "aten::logsumexp", .emit = logsumexp},
    {.name = "aten::max", .emit = extreme_all<&Builder::reduce_max>},
    {.name = "aten::max.dim", .emit = extreme_with_positions<Compare::kGt>},
    {.name = "aten::mean", .emit = mean_all},
    {.name = "aten::mean.dim", .emit = mean},
    {.name = "aten::min", .emit = extreme_all<&Builder::reduce_min>},
    {.name = "aten::min.dim", .emit = extreme_with_positions<Compare::kLt>},
    {.name = "aten::nansum", .emit = nansum},
    {.name = "aten::norm.Scalar", .emit = norm_all, .constants = "p"},
    {.name = "aten::norm.ScalarOpt_dim", .emit = norm, .constants = "p"},
    {.name = "aten::norm.ScalarOpt_dim_dtype", .emit = norm, .constants = "p"},
    {.name = "aten::norm.ScalarOpt_dtype", .emit = norm_all, .constants = "p"},
    {.name = "aten::prod", .emit = prod_all},
    {.name = "aten::prod.dim_int", .emit = prod},
    {.name = "aten::renorm", .emit = renorm, .constants = "p"},
    {.name = "aten::std.correction", .emit = std_, .constants = "correction"},
    {.name = "aten::std_mean.correction", .emit = std_mean, .constants = "correction"},
    {.name = "aten::sum", .emit = sum_all},
    {.name = "aten::sum.dim_IntList", .emit = sum},
    {.name = "aten::trace", .emit = trace},
    {.name = "aten::var.correction", .emit = var, .constants = "correction"},
    {.name = "aten::var_mean.correction", .emit = var_mean, .constants = "correction"},
};

}  // namespace

std::span<const Row> reduce_rows() { return kReduceRows; }

}  // namespace sluice::ops
