// Matches the composites batch_norm_sums and batch_norm_gradient, and a relu_gradient in front of them if its
// ReLU follows the same batch normalization.
// Makes "sluice_channel_sums" and "sluice_normalization_gradient" (stablehlo/kernel_library.h). With a ReLU
// they take the gradient of the ReLU's result and find out from x where it passes: the gradient that
// passes the ReLU is never in memory.
#include <utility>

#include "sluice/patterns/batch_norm.h"
#include "sluice/patterns/table.h"

namespace sluice::patterns {
namespace {

namespace composites = stablehlo::composites;

// The gradient that reaches a normalization of x. weight and bias belong to the normalization whose ReLU the
// kernel must still apply; else they are empty.
struct Gradient {
  Value g, weight, bias;
};

Gradient before_relu(Rewriter& r, const Values& in) {
  const Gradient as_it_is{in[0], {}, {}};
  const Operation* const gradient = r.composite(in[0], composites::kReluGradient);
  if (gradient == nullptr) return as_it_is;
  const Operation* const relu = r.composite(gradient->operands[1], composites::kRelu);
  const Operation* const forward = relu == nullptr ? nullptr : batch_norm_of(r, relu->operands[0]);
  if (forward == nullptr) return as_it_is;
  const Values own = batch_norm_operands(r.b, *forward);
  if (own[0] != in[1] || own[1] != in[2] || own[2] != in[3]) return as_it_is;
  return {gradient->operands[0], own[3], own[4]};
}

Values sums(Rewriter& r, const Operation& op) {
  if (!all_f32(op.operands) || is_small(op.operands[1])) return {};
  const Gradient of = before_relu(r, op.operands);
  const Type channels{DType::kF32, {op.operands[1].dim(1)}};
  Values operands = op.operands;
  operands[0] = of.g;
  if (of.bias) operands.insert(operands.end(), {of.weight, of.bias});
  return call_on_activations(r.b, stablehlo::kChannelSumsTarget, operands, {channels, channels});
}

Values of_x(Rewriter& r, const Operation& op) {
  if (!all_f32(op.operands) || is_small(op.operands[1])) return {};
  const Gradient of = before_relu(r, op.operands);
  Values operands = op.operands;
  operands[0] = of.g;
  if (!operands[4]) operands[4] = each_channel(r.b, 1, operands[1]);
  if (of.bias) operands.push_back(of.bias);
  return call_on_activations(r.b, stablehlo::kNormalizationGradientTarget, operands, {operands[1].type()}, {},
                             /*in_place=*/of.bias ? 1 : 0);
}

}  // namespace

void batch_norm_gradient(Rewriter& r, const KernelLibrary&) {
  r.each([&](const Operation& op) -> Values {
    if (op.is_composite(composites::kBatchNormSums)) return sums(r, op);
    if (op.is_composite(composites::kBatchNormGradient)) return of_x(r, op);
    return {};
  });
}

}  // namespace sluice::patterns
