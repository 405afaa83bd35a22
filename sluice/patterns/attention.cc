// Matches the composites attention and attention_gradient for which the target has a kernel.
// Makes "sluice_attention" and "sluice_attention_gradient" (stablehlo/kernel_library.h). Where q, k and v are
// parts of one tensor that one linear layer makes (packed QKV), the calls read that tensor and write its
// gradient as a whole. Their operands have positions before heads, as models make them: XLA then drops both
// transposes, the model's and this one. (A layout with the same meaning leaves copies behind.)
//
// attention_in_groups() makes loops over groups of heads (ops/attention/groups.h) of these composites, for
// targets whose fast memory holds the scores of a group.
#include <limits>
#include <utility>

#include "sluice/patterns/calls.h"
#include "sluice/patterns/table.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::patterns {
namespace {

namespace composites = stablehlo::composites;
using stablehlo::AttentionCall;

const Dims kPositionsFirst = {0, 2, 1, 3};  // the permutation is its own inverse
Dims positions_first(const Dims& dims) {
  return dims.size() == 4 ? Dims{dims[0], dims[2], dims[1], dims[3]} : dims;
}
Value positions_first(Builder& b, Value x) { return x.rank() == 4 ? b.transpose(x, kPositionsFirst) : x; }

// Returns the tensor [batch, positions, 3 heads size] with the parts q, k and v. Else empty.
Value packed_qkv(Rewriter& r, Value q, Value k, Value v) {
  if (q.dims() != k.dims()) return {};
  const int64_t heads = q.dim(1), positions = q.dim(2), size = q.dim(3);
  const Dims all = {q.dim(0), positions, 3 * heads, size};
  Value whole;
  int64_t first = 0;
  for (const Value part : {q, k, v}) {
    const Operation* const transpose = r.made_by(part, "stablehlo.transpose");
    if (transpose == nullptr || transpose->attributes.list("permutation") != kPositionsFirst) return {};
    const Value rows = transpose->operands[0];
    const Operation* const slice = r.made_by(rows, "stablehlo.slice");
    if (slice == nullptr || slice->attributes.list("start_indices") != Dims{0, 0, first, 0}) return {};
    if (slice->attributes.list("strides") != Dims{1, 1, 1, 1}) return {};
    if (slice->operands[0].dims() != all || rows.dim(2) != heads) return {};
    const Value from = r.before_reshapes(slice->operands[0]);
    if (whole && from != whole) return {};
    whole = from;
    first += heads;
  }
  return r.b.reshape(whole, {all[0], positions, 3 * heads * size});
}

// Returns the mask as f32 numbers to add to the scores, with all keys. Empty without a mask.
Value added_mask(Builder& b, Value mask, int64_t keys) {
  if (!mask) return {};
  Dims dims = mask.dims();
  dims[3] = keys;
  const Value whole = b.broadcast(mask, dims);
  if (mask.dtype() != DType::kPred) return whole;
  const Type type{DType::kF32, dims};
  return b.select(whole, b.splat(0, type), b.splat(-std::numeric_limits<double>::infinity(), type));
}

// The operands of an operation after its tensors; empty if it lacks them.
struct Last {
  Value mask, seeds, p;
};
Last last_of(const Operation& op, size_t tensors) {
  Last last;
  size_t end = op.operands.size();
  if (op.number("dropout") != 0) {
    last.p = op.operands[--end];
    last.seeds = op.operands[--end];
  }
  if (end > tensors) last.mask = op.operands[tensors];
  return last;
}

Values call(Rewriter& r, std::string_view target, Values operands, std::vector<Type> results,
            const Operation& op, const Last& last) {
  for (Value& operand : operands) operand = positions_first(r.b, operand);
  if (last.mask) operands.push_back(last.mask);
  CallAttributes attributes = {{"causal", op.number("causal")}, {"scale", op.real("scale")}};
  if (last.seeds) {
    // Kernels read tensors of f32, so the seeds are passed as f32 with the same bits.
    operands.insert(operands.end(), {r.b.bitcast_convert(last.seeds, DType::kF32), last.p});
    attributes.emplace_back("dropout", int64_t{1});
  }
  for (Type& result : results) result.dims = positions_first(result.dims);
  Values made = call_on_rows(r.b, target, operands, results, attributes);
  for (Value& value : made) value = positions_first(r.b, value);
  return made;
}

bool takes(const KernelLibrary& kernels, Value q, Value k, Value v, Value mask) {
  const bool fits_mask = !mask || mask.dtype() == DType::kPred || mask.dtype() == DType::kF32;
  return all_f32({q, k, v}) && fits_mask && !is_small(q) &&
         kernels.has(
             {.batch = q.dim(0), .heads = q.dim(1), .queries = q.dim(2), .keys = k.dim(2), .size = q.dim(3)});
}

Values forward(Rewriter& r, const KernelLibrary& kernels, const Operation& op) {
  const Value q = op.operands[0], k = op.operands[1], v = op.operands[2];
  Last last = last_of(op, 3);
  if (!takes(kernels, q, k, v, last.mask)) return {};
  const Value whole = packed_qkv(r, q, k, v);
  last.mask = added_mask(r.b, last.mask, k.dim(2));
  const Dims rows(q.dims().begin(), q.dims().begin() + 3);
  return call(r, AttentionCall::kTarget, whole ? Values{whole} : Values{q, k, v},
              {q.type(), {DType::kF32, rows}}, op, last);
}

Values gradient(Rewriter& r, const KernelLibrary& kernels, const Operation& op) {
  const Value grad = op.operands[0], q = op.operands[1], k = op.operands[2], v = op.operands[3];
  const Value output = op.operands[4], logsumexp = op.operands[5];
  Last last = last_of(op, 6);
  if (!takes(kernels, q, k, v, last.mask) || !all_f32({grad, output, logsumexp})) return {};
  constexpr std::string_view kTarget = AttentionCall::kGradientTarget;
  last.mask = added_mask(r.b, last.mask, k.dim(2));
  const Value whole = packed_qkv(r, q, k, v);
  if (!whole)
    return call(r, kTarget, {grad, q, k, v, output, logsumexp}, {q.type(), k.type(), v.type()}, op, last);
  const Value grad_qkv = call(r, kTarget, {grad, whole, output, logsumexp}, {whole.type()}, op, last)[0];
  const int64_t columns = whole.dim(2) / 3;
  Values parts;
  for (int64_t first = 0; first < whole.dim(2); first += columns) {
    const Value part = r.b.slice_dim(grad_qkv, 2, first, first + columns);
    parts.push_back(positions_first(r.b, r.b.reshape(part, positions_first(q.dims()))));
  }
  return parts;
}

}  // namespace

void attention(Rewriter& r, const KernelLibrary& kernels) {
  r.each([&](const Operation& op) -> Values {
    if (op.is_composite(composites::kAttention)) return forward(r, kernels, op);
    if (op.is_composite(composites::kAttentionGradient)) return gradient(r, kernels, op);
    return {};
  });
}

void attention_in_groups(Rewriter& r, const ops::attention::Groups& groups) {
  if (groups.bytes <= 0) return;
  r.each([&](const Operation& op) -> Values {
    const bool is_attention =
        op.is_composite(composites::kAttention) || op.is_composite(composites::kAttentionGradient);
    return is_attention ? ops::attention::in_groups(r.b, op, groups) : Values();
  });
}

}  // namespace sluice::patterns
