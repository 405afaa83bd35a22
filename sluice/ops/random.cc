// Random numbers. Each call draws from its own state (see Emit::random_state), so that results do not depend
// on other operations in the program.
#include "sluice/ops/random.h"

#include "sluice/base/text/join.h"

namespace sluice::ops {
namespace {

// ---- uniform, normal and derived distributions ----

Values uniform(Emit& e) {
  Builder& b = e.b;
  const Type type = e.tensor("self").type();
  Value u = Source(e).uniform(type.dtype, type.dims);
  Value from = e.scalar("from", u.dtype(), type.dims), until = e.scalar("to", u.dtype(), type.dims);
  return {to(b, b.add(b.multiply(u, b.subtract(until, from)), from), type.dtype)};
}

Value scaled_normal(Emit& e, const Type& type) {
  Builder& b = e.b;
  Value x = Source(e).normal(type.dtype, type.dims);
  Value mean = b.broadcast(e.operand("mean", x.dtype()), type.dims);
  Value deviation = b.broadcast(e.operand("std", x.dtype()), type.dims);
  return b.add(b.multiply(x, deviation), mean);
}

Values normal(Emit& e) {
  const Type type = e.tensor("self").type();
  return {to(e.b, scaled_normal(e, type), type.dtype)};
}

Values normal_of_tensors(Emit& e) {
  const DType dtype = e.promote({"mean", "std"});
  const Values v = operands(e, dtype, {"mean", "std"});
  return {to(e.b, scaled_normal(e, v[0].type()), dtype)};
}

Values log_normal(Emit& e) {
  const Type type = e.tensor("self").type();
  return {to(e.b, e.b.exp(scaled_normal(e, type)), type.dtype)};
}

// bf16 and f16 are drawn in f32: steps of 2^-8 or 2^-11 would cut off the tail.
Values exponential(Emit& e) {
  Builder& b = e.b;
  const Type type = e.tensor("self").type();
  Value u = Source(e).uniform(compute_type(type.dtype), type.dims);
  Value x = b.negate(b.log1p(b.negate(u)));
  return {to(b, b.divide(x, e.scalar("lambd", u.dtype(), type.dims)), type.dtype)};
}

Values geometric(Emit& e) {
  Builder& b = e.b;
  const Type type = e.tensor("self").type();
  Value u = Source(e).uniform(DType::kF32, type.dims);
  Value p = e.scalar("p", u.dtype(), type.dims);
  Value count = b.ceil(b.divide(b.log1p(b.negate(u)), b.log1p(b.negate(p))));
  return {to(b, b.maximum(count, number_like(b, 1, count)), type.dtype)};
}

Values cauchy(Emit& e) {
  Builder& b = e.b;
  const Type type = e.tensor("self").type();
  Value u = Source(e).uniform(compute_type(type.dtype), type.dims);
  Value angle = b.multiply(b.subtract(u, number_like(b, 0.5, u)), number_like(b, std::numbers::pi, u));
  Value x = b.multiply(e.scalar("sigma", u.dtype(), type.dims), b.chlo("tan", angle));
  return {to(b, b.add(x, e.scalar("median", u.dtype(), type.dims)), type.dtype)};
}

// ---- Bernoulli and dropout ----

// Returns true with probability p. f64 probabilities are drawn in f64.
Value coin(Emit& e, Value p, const Dims& dims) {
  Value u = Source(e).uniform(p.dtype(), dims);
  return e.b.compare(u, e.b.broadcast(p, dims), Compare::kLt);
}

DType probability_type(DType dtype) { return dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

// Draws values 0 and 1, in the element type of self, with probabilities from a number or a tensor "p".
Values bernoulli(Emit& e) {
  const Type type = e.tensor("self").type();
  Value p = e.operand("p", probability_type(type.dtype));
  return {to(e.b, coin(e, p, type.dims), type.dtype)};
}

// Draws with the probabilities in self.
Values bernoulli_of_self(Emit& e) {
  Value p = e.tensor("self");
  e.check(stablehlo::is_float(p.dtype()), "expected a tensor of floats, the probabilities; convert it first");
  return {to(e.b, coin(e, to(e.b, p, probability_type(p.dtype())), p.dims()), p.dtype())};
}

Values native_dropout(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("input");
  if (e.has("train") && !e.boolean("train")) return {x, b.splat(1, Type{DType::kPred, x.dims()})};
  const DType compute = compute_type(x.dtype());
  Value p = e.scalar("p", compute);
  Value one = b.splat(1, p.type());
  Value keep = b.subtract(one, p);
  Value kept = coin(e, keep, x.dims());
  // If p is 1, all elements are dropped, and the factor must not be infinite.
  Value factor = b.select(is_equal(b, keep, 0), number_like(b, 0, keep), b.divide(one, keep));
  Value scaled = b.multiply(to(b, x, compute), b.broadcast(factor, x.dims()));
  return {to(b, b.select(kept, scaled, number_like(b, 0, scaled)), x.dtype()), kept};
}

Values native_dropout_backward(Emit& e) {
  Builder& b = e.b;
  Value grad = e.tensor("grad_output");
  const DType compute = compute_type(grad.dtype());
  Value scaled = b.multiply(to(b, grad, compute), e.scalar("scale", compute, grad.dims()));
  return {to(b, b.multiply(scaled, e.operand("mask", compute)), grad.dtype())};
}

// ---- integers ----

// Draws integers of [first, first + count) in the element type of self; a count of 0 means all 2^64.
Values whole_numbers(Emit& e, const Type& type, int64_t first, uint64_t count) {
  Builder& b = e.b;
  Source source(e);
  const bool narrow = count != 0 && count <= (uint64_t{1} << 24);  // a 32-bit draw is uniform enough
  const DType drawn = narrow ? DType::kU32 : DType::kU64;
  Value x = source.bits(drawn, type.dims);
  if (count != 0) x = b.remainder(x, b.splat(static_cast<int64_t>(count), x.type()));
  Value shifted = b.add(to(b, x, DType::kS64), b.splat(first, Type{DType::kS64, type.dims}));
  return {to(b, shifted, type.dtype)};
}

// Returns the number one past the largest that random_() draws for an element type.
uint64_t default_count(DType dtype) {
  switch (dtype) {
    case DType::kPred:
      return 2;
    case DType::kS8:
      return uint64_t{1} << 7;
    case DType::kU8:
      return uint64_t{1} << 8;
    case DType::kS16:
      return uint64_t{1} << 15;
    case DType::kU16:
      return uint64_t{1} << 16;
    case DType::kS32:
      return uint64_t{1} << 31;
    case DType::kU32:
      return uint64_t{1} << 32;
    case DType::kS64:
    case DType::kU64:
      return uint64_t{1} << 63;
    default:
      return (uint64_t{1} << Source::digits_of(dtype)) + 1;
  }
}

Values random_of_all(Emit& e) {
  const Type type = e.tensor("self").type();
  return whole_numbers(e, type, 0, default_count(type.dtype));
}

Values random_until(Emit& e) {
  e.check(e.integer("to") > 0, "expected an upper end above 0");
  return whole_numbers(e, e.tensor("self").type(), 0, static_cast<uint64_t>(e.integer("to")));
}

Values random_between(Emit& e) {
  const Type type = e.tensor("self").type();
  const auto first = static_cast<uint64_t>(e.integer("from"));
  const uint64_t end = e.has("to") ? static_cast<uint64_t>(e.integer("to")) : default_count(type.dtype);
  e.check(!e.has("to") || e.integer("from") < e.integer("to"), "expected `from` below `to`");
  return whole_numbers(e, type, e.integer("from"), end - first);
}

// Sorts the numbers 0 … n-1 by random keys.
Values randperm(Emit& e) {
  Builder& b = e.b;
  const Dims dims = {e.integer("n")};
  const Value pair[] = {Source(e).bits(DType::kU64, dims), b.iota(Type{DType::kS32, dims}, 0)};
  const Values sorted = b.sort(pair, 0, true, [](Builder& body, std::span<const Value> v) {
    return Values{body.compare(v[0], v[1], Compare::kLt)};
  });
  return {to(b, sorted[1], e.dtype("dtype").value_or(DType::kS64))};
}

// ---- multinomial ----

// Draws without replacement: the categories with the largest log(weight) plus Gumbel noise, the largest
// first.
Value without_replacement(Emit& e, Value weights, int64_t samples) {
  Builder& b = e.b;
  const int64_t last = weights.rank() - 1;
  // u in (0, 1]: -log(u) is exponential noise, never NaN.
  Value u = b.subtract(number_like(b, 1, weights), Source(e).uniform(weights.dtype(), weights.dims()));
  Value noise = b.maximum(b.negate(b.log(u)), number_like(b, std::ldexp(1.0, -40), weights));
  const Value pair[] = {b.divide(weights, noise), b.iota(Type{DType::kS32, weights.dims()}, last)};
  const Values sorted = b.sort(pair, last, true, [](Builder& body, std::span<const Value> v) {
    return Values{body.compare(v[0], v[1], Compare::kGt)};
  });
  return b.slice_dim(sorted[1], last, 0, samples);
}

// Draws with replacement: the number of cumulative weights at or below a uniform draw.
Value with_replacement(Emit& e, Value weights, int64_t samples) {
  Builder& b = e.b;
  const int64_t last = weights.rank() - 1, categories = weights.dim(last);
  const Values sums = scan(b, {weights}, {b.splat(0, Type{weights.dtype(), {}})}, last,
                           [](Builder& body, const Values& earlier, const Values& later) {
                             return Values{body.add(earlier[0], later[0])};
                           });
  Value total = b.slice_dim(sums[0], last, categories - 1, categories);
  Dims drawn = weights.dims(), leading = weights.dims();
  drawn[static_cast<size_t>(last)] = samples;
  leading.pop_back();
  Value u = b.multiply(Source(e).uniform(weights.dtype(), drawn), b.broadcast(total, drawn));
  Dims all = drawn, of_draws, of_sums;
  all.push_back(categories);
  for (int64_t i = 0; i <= last; ++i) of_draws.push_back(i);
  for (int64_t i = 0; i < last; ++i) of_sums.push_back(i);
  of_sums.push_back(last + 1);
  Value below = b.compare(b.broadcast_in_dim(sums[0], all, of_sums), b.broadcast_in_dim(u, all, of_draws),
                          Compare::kLe);
  Value index = b.reduce_sum(to(b, below, DType::kS32), {last + 1});
  return b.minimum(index, number_like(b, static_cast<double>(categories - 1), index));
}

Values multinomial(Emit& e) {
  Value x = e.tensor("self");
  e.check(x.rank() == 1 || x.rank() == 2, "expected one or two dimensions");
  e.check(stablehlo::is_float(x.dtype()), "expected a tensor of floats, the weights; convert it first");
  const int64_t samples = e.integer("num_samples");
  const bool replacement = e.boolean("replacement");
  e.check(samples > 0, "expected at least one sample");
  e.check(replacement || samples <= x.dim(x.rank() - 1),
          "expected no more samples than categories without replacement");
  Value weights = to(e.b, x, compute_type(x.dtype()));
  Value index =
      replacement ? with_replacement(e, weights, samples) : without_replacement(e, weights, samples);
  return {to(e.b, index, DType::kS64)};
}

// ---- checks of the distributions' parameters ----

std::string unless(bool right, std::string_view expected, double found) {
  return right ? "" : base::str("expected ", expected, ", found ", found);
}

std::string probability(const NumberOf& number) {
  const double p = number("p");
  return unless(p >= 0 && p <= 1, "a probability p in [0, 1]", p);
}
std::string probability_inside(const NumberOf& number) {
  const double p = number("p");
  return unless(p > 0 && p < 1, "a probability p in (0, 1)", p);
}
std::string deviation(const NumberOf& number) {
  return unless(number("std") >= 0, "std >= 0", number("std"));
}
std::string positive_deviation(const NumberOf& number) {
  return unless(number("std") > 0, "std > 0", number("std"));
}
std::string rate(const NumberOf& number) {
  return unless(number("lambd") > 0, "lambda > 0", number("lambd"));
}
std::string width(const NumberOf& number) {
  return unless(number("sigma") > 0, "sigma > 0", number("sigma"));
}
std::string interval(const NumberOf& number) {
  return unless(number("from") <= number("to"), base::str("`from` of at most `to` ", number("to")),
                number("from"));
}

const Row kRandomRows[] = {
    {.name = "aten::bernoulli", .emit = bernoulli_of_self, .random = true},
    {.name = "aten::bernoulli.p",
     .emit = bernoulli,
     .constant_if_zero = "p",
     .constant_if_one = "p",
     .random = true,
     .numbers = probability},
    {.name = "aten::bernoulli.Tensor", .emit = bernoulli, .random = true},
    {.name = "aten::binomial", .emit = random::binomial, .random = true},
    {.name = "aten::_dirichlet_grad", .emit = random::dirichlet_gradient},
    {.name = "aten::poisson", .emit = random::poisson, .random = true},
    {.name = "aten::_sample_dirichlet", .emit = random::dirichlet, .random = true},
    {.name = "aten::_standard_gamma", .emit = random::standard_gamma, .random = true},
    {.name = "aten::_standard_gamma_grad", .emit = random::standard_gamma_gradient},
    {.name = "aten::cauchy", .emit = cauchy, .random = true, .numbers = width},
    {.name = "aten::exponential", .emit = exponential, .random = true, .numbers = rate},
    {.name = "aten::geometric", .emit = geometric, .random = true, .numbers = probability_inside},
    {.name = "aten::log_normal", .emit = log_normal, .random = true, .numbers = positive_deviation},
    {.name = "aten::multinomial", .emit = multinomial, .random = true},
    {.name = "aten::native_dropout",
     .emit = native_dropout,
     .constant_if_zero = "p",
     .constant_if_one = "p",
     .random = true,
     .numbers = probability},
    {.name = "aten::native_dropout_backward", .emit = native_dropout_backward},
    {.name = "aten::normal.Tensor_Tensor", .emit = normal_of_tensors, .random = true},
    {.name = "aten::normal.Tensor_float", .emit = normal_of_tensors, .random = true, .numbers = deviation},
    {.name = "aten::normal.float_Tensor", .emit = normal_of_tensors, .random = true},
    {.name = "aten::normal_functional", .emit = normal, .random = true, .numbers = deviation},
    {.name = "aten::random", .emit = random_of_all, .random = true},
    {.name = "aten::random.from", .emit = random_between, .random = true},
    {.name = "aten::random.to", .emit = random_until, .random = true},
    {.name = "aten::randperm", .emit = randperm, .random = true},
    {.name = "aten::uniform", .emit = uniform, .random = true, .numbers = interval},
};

}  // namespace

std::span<const Row> random_rows() { return kRandomRows; }

}  // namespace sluice::ops
