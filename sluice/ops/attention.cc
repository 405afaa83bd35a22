// Attention as one operation: softmax(scale q k^T + mask) v, and its gradient, which computes the
// probabilities again from the logarithms of their sums. bf16 and f16 are multiplied directly; scores and all
// sums are f32. With dropout, both passes draw the same seeds from one state, and so decide alike.
#include <cmath>
#include <limits>

#include "sluice/base/error.h"
#include "sluice/base/strings.h"
#include "sluice/ops/random.h"
#include "sluice/stablehlo/attention_dropout.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::ops {
namespace {

// Products for each head: a b^T over the last dimensions; a's last dimension with b's positions; both
// positions.
const stablehlo::DotDims kSizes = {{0, 1}, {0, 1}, {3}, {3}};
const stablehlo::DotDims kKeys = {{0, 1}, {0, 1}, {3}, {2}};
const stablehlo::DotDims kQueries = {{0, 1}, {0, 1}, {2}, {2}};

struct Operands {
  Value q;          // [batch, heads, queries, size]
  Value k, v;       // [batch, heads of keys, keys, size]; a group of consecutive heads of q shares each
  Value mask = {};  // optional: bool or float, [batch or 1, heads or 1, queries or 1, keys or 1]
  bool causal = false;
  double scale = 1;
  Value seeds = {};  // with dropout: u32 [2, batch, heads, queries]
  Value p = {};      // the probability of dropout, in the compute type

  stablehlo::CallAttributes attributes() const {
    stablehlo::CallAttributes all = {{"causal", int64_t{causal}}, {"scale", scale}};
    if (seeds) all.emplace_back("dropout", int64_t{1});
    return all;
  }
  // Returns the operands of the composites, with `more` after q, k and v.
  Values values(const Values& before = {}, const Values& more = {}) const {
    Values all = before;
    all.insert(all.end(), {q, k, v});
    all.insert(all.end(), more.begin(), more.end());
    for (const Value last : {mask, seeds, p})
      if (last) all.push_back(last);
    return all;
  }
  Dims dims_of_scores() const { return {q.dim(0), q.dim(1), q.dim(2), k.dim(2)}; }
  // Maps [batch, heads, queries, …] to [batch, heads of keys, heads that share them × queries, …]; by_head()
  // maps back.
  Value grouped(Builder& b, Value x) const {
    return b.reshape(x, {q.dim(0), k.dim(1), q.dim(1) / k.dim(1) * q.dim(2), x.dim(3)});
  }
  Value by_head(Builder& b, Value x) const { return b.reshape(x, {q.dim(0), q.dim(1), q.dim(2), x.dim(3)}); }
};

bool broadcasts(const Dims& from, const Dims& to) {
  if (from.size() > to.size()) return false;
  const size_t missing = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1 && from[i] != to[missing + i]) return false;
  return true;
}

Value read_mask(Emit& e, const Operands& in) {
  const Value mask = e.tensor("attn_mask");
  const Dims scores = in.dims_of_scores();
  e.check(
      (mask.dtype() == DType::kPred || stablehlo::is_float(mask.dtype())) && broadcasts(mask.dims(), scores),
      base::str("expected a mask of bool or float that fits [batch, heads, queries, keys] ",
                in_words(Type{DType::kPred, scores}), ", found ", in_words(mask)));
  Dims dims(scores.size() - mask.dims().size(), 1);
  dims.insert(dims.end(), mask.dims().begin(), mask.dims().end());
  return e.b.reshape(mask, dims);
}

Operands read(Emit& e) {
  Operands in{
      .q = e.tensor("query"), .k = e.tensor("key"), .v = e.tensor("value"), .causal = e.boolean("is_causal")};
  const Dims &q = in.q.dims(), &k = in.k.dims();
  const bool fit = q.size() == 4 && k.size() == 4 && in.v.dims() == k && q[0] == k[0] && k[1] > 0 &&
                   q[1] % k[1] == 0 && q[3] == k[3];
  const bool one_type = in.q.dtype() == in.k.dtype() && in.q.dtype() == in.v.dtype();
  e.check(fit && one_type && stablehlo::is_float(in.q.dtype()),
          base::str("expected float tensors [batch, heads, positions, size] of one type, found ",
                    in_words(in.q), ", ", in_words(in.k), " and ", in_words(in.v)));
  if (e.has("attn_mask")) in.mask = read_mask(e, in);
  in.scale = e.has("scale") ? e.number("scale") : 1 / std::sqrt(static_cast<double>(q[3]));
  return in;
}

// Repeats [batch, heads, queries] for each key or place.
Value spread(Builder& b, Value rows, const Dims& dims) { return b.broadcast_in_dim(rows, dims, {0, 1, 2}); }

// Returns scale q k^T in the compute type, plus the mask; keys that a query does not see count as -inf.
Value scores_of(Emit& e, const Operands& in) {
  Builder& b = e.b;
  const Value products =
      in.by_head(b, b.dot_general(in.grouped(b, in.q), in.k, kSizes, compute_type(in.q.dtype())));
  Value scores = b.multiply(products, number_like(b, in.scale, products));
  const auto hide_all_but = [&](Value seen) {
    scores = b.select(seen, scores, number_like(b, -std::numeric_limits<double>::infinity(), scores));
  };
  if (in.causal) {
    const Type positions{DType::kS32, scores.dims()};
    hide_all_but(b.compare(b.iota(positions, 3), b.iota(positions, 2), Compare::kLe));
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

// Unsigned numbers with the operators that take_bits() needs.
struct Words {
  Builder& b;
  Value value;

  Words operator>>(uint32_t bits) const { return {b, b.shift_right_logical(value, like(bits))}; }
  void operator^=(const Words& other) { value = b.xor_(value, other.value); }
  void operator+=(const Words& other) { value = b.add(value, other.value); }
  void operator*=(uint32_t factor) { value = b.multiply(value, like(factor)); }
  Value like(uint32_t number) const { return b.splat(int64_t{number}, value.type()); }
};

// Applies dropout to probabilities of the compute type, or to their gradients.
Value dropped(Builder& b, const Operands& in, Value x) {
  if (!in.seeds) return x;
  const auto seeds = [&](int64_t i) {
    const Value some = b.slice_dim(in.seeds, 0, i, i + 1);
    return spread(b, b.reshape(some, {x.dim(0), x.dim(1), x.dim(2)}), x.dims());
  };
  Words bits{b, b.iota(Type{DType::kU32, x.dims()}, 3)};
  bits *= stablehlo::kKeyFactor;
  bits += Words{b, seeds(0)};
  stablehlo::take_bits(bits, Words{b, seeds(1)});
  const Value one = b.splat(1, in.p.type()), keep = b.subtract(one, in.p);
  const Value as_float = to(b, keep, DType::kF32);
  const Value below = b.ceil(b.multiply(as_float, number_like(b, stablehlo::kDecisions, as_float)));
  const Value kept = b.compare((bits >> stablehlo::kLowBits).value,
                               b.broadcast(b.convert(below, DType::kU32), x.dims()), Compare::kLt);
  // If p is 1, nothing is kept, and the factor must not be infinite.
  const Value factor = b.select(is_equal(b, keep, 0), number_like(b, 0, keep), b.divide(one, keep));
  return b.select(kept, b.multiply(x, b.broadcast(factor, x.dims())), number_like(b, 0, x));
}

Values attention(Emit& e, const Operands& in) {
  Builder& b = e.b;
  const DType dtype = in.q.dtype(), compute = compute_type(dtype);
  const Value scores = scores_of(e, in);
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
      in.by_head(b, b.dot_general(in.grouped(b, to(b, dropped(b, in, exp), dtype)), in.v, kKeys, compute));
  const Value divisor = spread(b, unless_none(sum, 1), output.dims());
  return {to(b, b.divide(output, divisor), dtype),
          unless_none(b.add(largest, b.log(sum)), std::numeric_limits<double>::infinity())};
}

Values marked_attention(Emit& e, const Operands& in) {
  return e.b.composite(stablehlo::composites::kAttention, in.values(), in.attributes(),
                       [&] { return attention(e, in); });
}

Values attention_gradient(Emit& e, const Operands& in, Value grad, Value output, Value logsumexp) {
  Builder& b = e.b;
  const DType dtype = in.q.dtype(), compute = compute_type(dtype);
  const Value scores = scores_of(e, in);
  const Value p = b.exp(b.subtract(scores, spread(b, to(b, logsumexp, compute), scores.dims())));
  const Value of_p =
      dropped(b, in, in.by_head(b, b.dot_general(in.grouped(b, to(b, grad, dtype)), in.v, kSizes, compute)));
  const Value delta = b.reduce_sum(b.multiply(to(b, grad, compute), to(b, output, compute)), {3});
  const Value of_products =
      b.multiply(b.multiply(p, b.subtract(of_p, spread(b, delta, p.dims()))), number_like(b, in.scale, p));
  const Value of_scores = in.grouped(b, to(b, of_products, dtype));
  const auto product = [&](Value left, Value right, const stablehlo::DotDims& dims) {
    return to(b, b.dot_general(left, right, dims, compute), dtype);
  };
  return {
      in.by_head(b, product(of_scores, in.k, kKeys)), product(of_scores, in.grouped(b, in.q), kQueries),
      product(in.grouped(b, to(b, dropped(b, in, p), dtype)), in.grouped(b, to(b, grad, dtype)), kQueries)};
}

Values marked_gradient(Emit& e, const Operands& in) {
  const Value grad = e.tensor("grad_out"), output = e.tensor("out"), logsumexp = e.tensor("logsumexp");
  return e.b.composite(stablehlo::composites::kAttentionGradient, in.values({grad}, {output, logsumexp}),
                       in.attributes(), [&] { return attention_gradient(e, in, grad, output, logsumexp); });
}

// ---- without dropout ----

Operands read_without_dropout(Emit& e) {
  if (e.number("dropout_p") != 0) throw_error(Code::kUnimplemented, base::str(e.op(), ": dropout"));
  return read(e);
}

Values attention(Emit& e) { return marked_attention(e, read_without_dropout(e)); }
Values attention_backward(Emit& e) { return marked_gradient(e, read_without_dropout(e)); }

// ---- with dropout ----

Operands read_with_dropout(Emit& e, Value state) {
  Operands in = read(e);
  in.seeds = Source(e.b, state).bits(DType::kU32, {2, in.q.dim(0), in.q.dim(1), in.q.dim(2)});
  in.p = e.scalar("dropout_p", compute_type(in.q.dtype()));
  return in;
}

// One more result is the state from which the seeds are drawn.
Values attention_with_dropout(Emit& e) {
  const Value state = e.random_state();
  Values made = marked_attention(e, read_with_dropout(e, state));
  made.push_back(state);
  return made;
}

Values attention_with_dropout_backward(Emit& e) {
  return marked_gradient(e, read_with_dropout(e, e.tensor("state")));
}

std::string probability(const NumberOf& number) {
  const double p = number("dropout_p");
  return p >= 0 && p <= 1 ? "" : base::str("expected a probability dropout_p in [0, 1], found ", p);
}

constexpr std::string_view kConstants = "dropout_p scale";
const Row kRows[] = {
    {.name = "aten::_scaled_dot_product_flash_attention_for_cpu", .emit = attention, .constants = kConstants},
    {.name = "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
     .emit = attention_backward,
     .constants = kConstants},
    {.name = "sluice::attention_with_dropout",
     .emit = attention_with_dropout,
     .constants = "scale",
     .random = true,
     .numbers = probability},
    {.name = "sluice::attention_with_dropout_backward",
     .emit = attention_with_dropout_backward,
     .constants = "scale"},
};

}  // namespace

std::span<const Row> attention_rows() { return kRows; }

}  // namespace sluice::ops
