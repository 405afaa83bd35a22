#include "sluice/ops/attention/formula.h"

#include <limits>

#include "sluice/ops/random.h"
#include "sluice/stablehlo/attention_dropout.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::ops::attention {
namespace {

// Products for each head: a b^T over the last dimensions; a's last dimension with b's positions; both
// positions.
const stablehlo::DotDims kSizes = {{0, 1}, {0, 1}, {3}, {3}};
const stablehlo::DotDims kKeys = {{0, 1}, {0, 1}, {3}, {2}};
const stablehlo::DotDims kQueries = {{0, 1}, {0, 1}, {2}, {2}};

// Maps [batch, heads, queries, …] to [batch, heads of keys, heads that share them × queries, …]; by_head()
// maps back.
Value grouped(Builder& b, const Operands& in, Value x) {
  return b.reshape(x, {in.q.dim(0), in.k.dim(1), in.sharing() * in.q.dim(2), x.dim(3)});
}
Value by_head(Builder& b, const Operands& in, Value x) {
  return b.reshape(x, {in.q.dim(0), in.q.dim(1), in.q.dim(2), x.dim(3)});
}

// Repeats [batch, heads, queries] for each key or place.
Value spread(Builder& b, Value rows, const Dims& dims) { return b.broadcast_in_dim(rows, dims, {0, 1, 2}); }

// Returns the places of the queries among all queries, s32, for each score.
Value places_of_queries(Builder& b, const Operands& in) {
  const Value places = b.iota(Type{DType::kS32, in.dims_of_scores()}, 2);
  return in.first_query ? b.add(places, b.broadcast(in.first_query, places.dims())) : places;
}

// Returns scale q k^T in the compute type, plus the mask; keys that a query does not see count as -inf.
Value scores_of(Builder& b, const Operands& in) {
  const Value products =
      by_head(b, in, b.dot_general(grouped(b, in, in.q), in.k, kSizes, compute_type(in.q.dtype())));
  Value scores = b.multiply(products, number_like(b, in.scale, products));
  const auto hide_all_but = [&](Value seen) {
    scores = b.select(seen, scores, number_like(b, -std::numeric_limits<double>::infinity(), scores));
  };
  if (in.causal) {
    const Type positions{DType::kS32, scores.dims()};
    hide_all_but(b.compare(b.iota(positions, 3), places_of_queries(b, in), Compare::kLe));
  }
  if (!in.mask) return scores;
  const Value mask = b.broadcast(in.mask, scores.dims());
  if (mask.dtype() == DType::kPred) {
    hide_all_but(mask);
    return scores;
  }
  return b.add(scores, to(b, mask, scores.dtype()));
}

double lowest_of(DType type) {
  return type == DType::kF64 ? std::numeric_limits<double>::lowest()
                             : double{std::numeric_limits<float>::lowest()};
}

// Applies dropout to probabilities of the compute type, or to their gradients.
Value dropped(Builder& b, const Operands& in, Value x) {
  if (!in.seeds) return x;
  const auto seeds = [&](int64_t i) {
    const Value some = b.slice_dim(in.seeds, 0, i, i + 1);
    return spread(b, b.reshape(some, {x.dim(0), x.dim(1), x.dim(2)}), x.dims());
  };
  Words bits{&b, b.iota(Type{DType::kU32, x.dims()}, 3)};
  if (in.first_key) bits += Words{&b, b.convert(in.first_key, DType::kU32)};
  bits *= stablehlo::kKeyFactor;
  bits += Words{&b, seeds(0)};
  stablehlo::take_bits(bits, Words{&b, seeds(1)});
  const Value one = b.splat(1, in.p.type()), keep = b.subtract(one, in.p);
  const Value as_float = to(b, keep, DType::kF32);
  const Value below = b.ceil(b.multiply(as_float, number_like(b, stablehlo::kDecisions, as_float)));
  const Value kept = b.compare((bits >> stablehlo::kLowBits).value,
                               b.broadcast(b.convert(below, DType::kU32), x.dims()), Compare::kLt);
  // If p is 1, nothing is kept, and the factor must not be infinite.
  const Value factor = b.select(is_equal(b, keep, 0), number_like(b, 0, keep), b.divide(one, keep));
  return b.select(kept, b.multiply(x, b.broadcast(factor, x.dims())), number_like(b, 0, x));
}

}  // namespace

stablehlo::CallAttributes Operands::attributes() const {
  stablehlo::CallAttributes all = {{"causal", int64_t{causal}}, {"scale", scale}};
  if (seeds) all.emplace_back("dropout", int64_t{1});
  return all;
}

Values Operands::values(const Values& before, const Values& more) const {
  Values all = before;
  all.insert(all.end(), {q, k, v});
  all.insert(all.end(), more.begin(), more.end());
  for (const Value last : {mask, seeds, p})
    if (last) all.push_back(last);
  return all;
}

Composite read_composite(const stablehlo::Operation& op) {
  const bool gradient = op.is_composite(stablehlo::composites::kAttentionGradient);
  const size_t first = gradient ? 1 : 0, tensors = first + 3 + (gradient ? 2 : 0);
  Composite read{{.q = op.operands[first],
                  .k = op.operands[first + 1],
                  .v = op.operands[first + 2],
                  .causal = op.number("causal") != 0,
                  .scale = op.real("scale")},
                 {}};
  size_t end = op.operands.size();
  if (op.number("dropout") != 0) {
    read.in.p = op.operands[--end];
    read.in.seeds = op.operands[--end];
  }
  if (end > tensors) read.in.mask = op.operands[tensors];
  if (gradient) read.given = {op.operands[0], op.operands[4], op.operands[5]};
  return read;
}

Values output_of(Builder& b, const Operands& in, DType type) {
  const DType dtype = in.q.dtype(), compute = compute_type(dtype);
  const Value scores = scores_of(b, in);
  Value largest = b.reduce_max(scores, {3}, /*nan_wins=*/false);
  // A query that sees no key has results of 0: its largest score is finite, and no sum of 0 is a divisor.
  if (in.mask) largest = b.maximum(largest, number_like(b, lowest_of(compute), largest));
  const Value exp = b.exp(b.subtract(scores, spread(b, largest, scores.dims())));
  const Value sum = b.reduce_sum(exp, {3});
  const Value none = in.mask ? b.compare(sum, number_like(b, 0, sum), Compare::kEq) : Value();
  const auto unless_none = [&](Value x, double otherwise) {
    return none ? b.select(none, number_like(b, otherwise, x), x) : x;
  };
  // The division comes after the product, because there is less to divide.
  const Value output =
      by_head(b, in, b.dot_general(grouped(b, in, to(b, dropped(b, in, exp), dtype)), in.v, kKeys, compute));
  const Value divisor = spread(b, unless_none(sum, 1), output.dims());
  return {to(b, b.divide(output, divisor), type),
          unless_none(b.add(largest, b.log(sum)), std::numeric_limits<double>::infinity())};
}

Values gradients_of(Builder& b, const Operands& in, const Given& given, DType type) {
  const DType dtype = in.q.dtype(), compute = compute_type(dtype);
  const Value scores = scores_of(b, in);
  const Value p = b.exp(b.subtract(scores, spread(b, to(b, given.logsumexp, compute), scores.dims())));
  const Value of_p = dropped(
      b, in, by_head(b, in, b.dot_general(grouped(b, in, to(b, given.grad, dtype)), in.v, kSizes, compute)));
  const Value delta = b.reduce_sum(b.multiply(to(b, given.grad, compute), to(b, given.output, compute)), {3});
  const Value of_products =
      b.multiply(b.multiply(p, b.subtract(of_p, spread(b, delta, p.dims()))), number_like(b, in.scale, p));
  const Value of_scores = grouped(b, in, to(b, of_products, dtype));
  const auto product = [&](Value left, Value right, const stablehlo::DotDims& dims) {
    return to(b, b.dot_general(left, right, dims, compute), type);
  };
  return {by_head(b, in, product(of_scores, in.k, kKeys)), product(of_scores, grouped(b, in, in.q), kQueries),
          product(grouped(b, in, to(b, dropped(b, in, p), dtype)), grouped(b, in, to(b, given.grad, dtype)),
                  kQueries)};
}

}  // namespace sluice::ops::attention
