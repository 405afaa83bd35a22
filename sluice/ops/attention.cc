// Attention as one operation, and its gradient. attention/formula.h has the formulas;
// attention/groups.h computes the same in a loop. With dropout, both passes draw the same seeds from one
// state.
#include <cmath>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/ops/attention/formula.h"
#include "sluice/ops/random.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::ops {
namespace {

using attention::Operands;

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

Values marked_attention(Emit& e, const Operands& in) {
  return e.b.composite(stablehlo::composites::kAttention, in.values(), in.attributes(),
                       [&] { return attention::output_of(e.b, in, in.q.dtype()); });
}

Values marked_gradient(Emit& e, const Operands& in) {
  const attention::Given given = {e.tensor("grad_out"), e.tensor("out"), e.tensor("logsumexp")};
  return e.b.composite(stablehlo::composites::kAttentionGradient,
                       in.values({given.grad}, {given.output, given.logsumexp}), in.attributes(),
                       [&] { return attention::gradients_of(e.b, in, given, in.q.dtype()); });
}

// ---- without dropout ----

Operands read_without_dropout(Emit& e) {
  if (e.number("dropout_p") != 0) throw_error(Code::kUnimplemented, base::str(e.op(), ": dropout"));
  return read(e);
}

Values attention_forward(Emit& e) { return marked_attention(e, read_without_dropout(e)); }
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

std::string dropout_probability(const NumberOf& number) {
  const double p = number("dropout_p");
  return p >= 0 && p <= 1 ? "" : base::str("expected a probability dropout_p in [0, 1], found ", p);
}

constexpr std::string_view kConstants = "dropout_p scale";
const Row kAttentionRows[] = {
    {.name = "aten::_scaled_dot_product_flash_attention_for_cpu",
     .emit = attention_forward,
     .constants = kConstants},
    {.name = "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
     .emit = attention_backward,
     .constants = kConstants},
    {.name = "sluice::attention_with_dropout",
     .emit = attention_with_dropout,
     .constants = "scale",
     .random = true,
     .numbers = dropout_probability},
    {.name = "sluice::attention_with_dropout_backward",
     .emit = attention_with_dropout_backward,
     .constants = "scale"},
};

}  // namespace

std::span<const Row> attention_rows() { return kAttentionRows; }

}  // namespace sluice::ops
