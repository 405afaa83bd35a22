// Attention as one operation: softmax(scale q k^T) v, and its gradient, which makes the probabilities again
// from the logarithms of their sums. bf16 and f16 are multiplied as they are; scores, sums and what is added
// up are f32.
#include <cmath>
#include <limits>

#include "sluice/base/error.h"
#include "sluice/base/strings.h"
#include "sluice/ops/common.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::ops {
namespace {

// Products for each head: of the last dimensions (a b^T), of a's last with b's positions, of both positions.
const stablehlo::DotDims kSizes = {{0, 1}, {0, 1}, {3}, {3}};
const stablehlo::DotDims kKeys = {{0, 1}, {0, 1}, {3}, {2}};
const stablehlo::DotDims kQueries = {{0, 1}, {0, 1}, {2}, {2}};

struct Operands {
  Value q, k, v;  // [batch, heads, positions, size]
  bool causal = false;
  double scale = 1;

  stablehlo::CallAttributes attributes() const { return {{"causal", int64_t{causal}}, {"scale", scale}}; }
};

Operands read(Emit& e) {
  Operands in{e.tensor("query"), e.tensor("key"), e.tensor("value"), e.boolean("is_causal")};
  const Dims &q = in.q.dims(), &k = in.k.dims();
  const bool fit =
      q.size() == 4 && k.size() == 4 && in.v.dims() == k && q[0] == k[0] && q[1] == k[1] && q[3] == k[3];
  const bool one_type = in.q.dtype() == in.k.dtype() && in.q.dtype() == in.v.dtype();
  e.check(fit && one_type && stablehlo::is_float(in.q.dtype()),
          base::str("expected float tensors [batch, heads, positions, size] of one type, found ",
                    in_words(in.q), ", ", in_words(in.k), " and ", in_words(in.v)));
  if (e.has("attn_mask") || e.number("dropout_p") != 0)
    throw_error(Code::kUnimplemented, base::str(e.op(), ": a mask or dropout"));
  in.scale = e.has("scale") ? e.number("scale") : 1 / std::sqrt(static_cast<double>(q[3]));
  return in;
}

// [batch, heads, queries] for each key or place.
Value spread(Builder& b, Value rows, const Dims& dims) { return b.broadcast_in_dim(rows, dims, {0, 1, 2}); }

// scale q k^T in the compute type; keys that a query does not see count -inf.
Value scores_of(Emit& e, const Operands& in) {
  Builder& b = e.b;
  const Value products = b.dot_general(in.q, in.k, kSizes, compute_type(in.q.dtype()));
  const Value scores = b.multiply(products, number_like(b, in.scale, products));
  if (!in.causal) return scores;
  const Type positions{DType::kS32, scores.dims()};
  const Value seen = b.compare(b.iota(positions, 3), b.iota(positions, 2), Compare::kLe);
  return b.select(seen, scores, number_like(b, -std::numeric_limits<double>::infinity(), scores));
}

Values attention(Emit& e, const Operands& in) {
  Builder& b = e.b;
  const DType dtype = in.q.dtype(), compute = compute_type(dtype);
  const Value scores = scores_of(e, in);
  const Value largest = b.reduce_max(scores, {3}, /*nan_wins=*/false);
  const Value exp = b.exp(b.subtract(scores, spread(b, largest, scores.dims())));
  const Value sum = b.reduce_sum(exp, {3});
  // Divided after the product, where there is less to divide.
  const Value output = b.dot_general(to(b, exp, dtype), in.v, kKeys, compute);
  return {to(b, b.divide(output, spread(b, sum, output.dims())), dtype), b.add(largest, b.log(sum))};
}

Values attention(Emit& e) {
  const Operands in = read(e);
  return e.b.composite(stablehlo::composites::kAttention, {in.q, in.k, in.v}, in.attributes(),
                       [&] { return attention(e, in); });
}

Values attention_gradient(Emit& e, const Operands& in, Value grad, Value output, Value logsumexp) {
  Builder& b = e.b;
  const DType dtype = in.q.dtype(), compute = compute_type(dtype);
  const Value scores = scores_of(e, in);
  const Value p = b.exp(b.subtract(scores, spread(b, to(b, logsumexp, compute), scores.dims())));
  const Value of_p = b.dot_general(to(b, grad, dtype), in.v, kSizes, compute);
  const Value delta = b.reduce_sum(b.multiply(to(b, grad, compute), to(b, output, compute)), {3});
  const Value of_products =
      b.multiply(b.multiply(p, b.subtract(of_p, spread(b, delta, p.dims()))), number_like(b, in.scale, p));
  const Value of_scores = to(b, of_products, dtype);
  const auto product = [&](Value left, Value right, const stablehlo::DotDims& dims) {
    return to(b, b.dot_general(left, right, dims, compute), dtype);
  };
  return {product(of_scores, in.k, kKeys), product(of_scores, in.q, kQueries),
          product(to(b, p, dtype), to(b, grad, dtype), kQueries)};
}

Values attention_backward(Emit& e) {
  const Operands in = read(e);
  const Value grad = e.tensor("grad_out"), output = e.tensor("out"), logsumexp = e.tensor("logsumexp");
  return e.b.composite(stablehlo::composites::kAttentionGradient, {grad, in.q, in.k, in.v, output, logsumexp},
                       in.attributes(), [&] { return attention_gradient(e, in, grad, output, logsumexp); });
}

constexpr std::string_view kConstants = "dropout_p scale";
constexpr Row kRows[] = {
    {.name = "aten::_scaled_dot_product_flash_attention_for_cpu", .emit = attention, .constants = kConstants},
    {.name = "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
     .emit = attention_backward,
     .constants = kConstants},
};

}  // namespace

std::span<const Row> attention_rows() { return kRows; }

}  // namespace sluice::ops
