#include "sluice/ops/kernel_normalization.h"

#include "sluice/ops/common.h"
#include "sluice/ops/kernel_operands.h"

namespace sluice::ops {
namespace {

// One number for each channel of x, where a model has none.
Value each_channel(Emit& e, double number, Value x) {
  return e.b.splat(number, Type{DType::kF32, {x.dim(1)}});
}

const Normalized* find(const std::unordered_map<int32_t, Normalized>& notes, Value x) {
  const auto found = notes.find(x.id());
  return found == notes.end() ? nullptr : &found->second;
}

void append(Values& operands, const Normalized& n) {
  operands.insert(operands.end(), {n.x, n.mean, n.inverse, n.weight, n.bias});
}

}  // namespace

Values kernel_moments(Emit& e, Value x, Value eps, const Values& running) {
  if (e.kernels() == nullptr || !all_f32({x}) || is_small(x)) return {};
  Values operands = {x, eps};
  operands.insert(operands.end(), running.begin(), running.end());
  const std::vector<Type> results(running.empty() ? 3 : 5, {DType::kF32, {x.dim(1)}});
  return call_on_activations(e, stablehlo::kMomentsTarget, operands, results);
}

void note_normalized(Emit& e, Value y, Normalized n) {
  Fusions* const fusions = e.fusions();
  if (fusions == nullptr || e.kernels() == nullptr) return;
  if (!all_f32({y, n.x, n.mean, n.inverse}) || is_small(y)) return;
  if (!n.weight) n.weight = each_channel(e, 1, n.x);
  if (!n.bias) n.bias = each_channel(e, 0, n.x);
  fusions->normalized.emplace(y.id(), n);
}

void note_sum(Emit& e, Value sum, Value a, Value b) {
  Fusions* const fusions = e.fusions();
  if (fusions == nullptr || e.kernels() == nullptr) return;
  if (a.type() == sum.type() && b.type() == sum.type()) fusions->sums.emplace(sum.id(), std::pair(a, b));
}

Value kernel_rectified(Emit& e, Value x) {
  Fusions* const fusions = e.fusions();
  if (fusions == nullptr) return {};
  Values operands;
  const Normalized* const alone = find(fusions->normalized, x);
  if (alone != nullptr) {
    append(operands, *alone);
  } else if (const auto sum = fusions->sums.find(x.id()); sum != fusions->sums.end()) {
    auto [a, b] = sum->second;
    if (find(fusions->normalized, a) == nullptr) std::swap(a, b);
    const Normalized* const first = find(fusions->normalized, a);
    const Normalized* const second = find(fusions->normalized, b);
    if (first == nullptr) return {};
    append(operands, *first);
    if (second != nullptr)
      append(operands, *second);
    else
      operands.push_back(b);
  } else {
    return {};
  }
  const Value made = call_on_activations(e, stablehlo::kNormalizeTarget, operands, {x.type()})[0];
  if (alone != nullptr) fusions->rectified.emplace(made.id(), *alone);
  return made;
}

void note_gated(Emit& e, Value result, Value gradient, Value rectified) {
  Fusions* const fusions = e.fusions();
  if (fusions == nullptr) return;
  const Normalized* const gate = find(fusions->rectified, rectified);
  if (gate != nullptr) fusions->gated.emplace(result.id(), Fusions::Gated{gradient, *gate});
}

NormalizationGradient ungated(Emit& e, Value grad, Value x, Value mean, Value inverse) {
  NormalizationGradient found{grad, x, mean, inverse, {}, {}};
  if (e.fusions() == nullptr) return found;
  const auto gated = e.fusions()->gated.find(grad.id());
  if (gated == e.fusions()->gated.end()) return found;
  const auto& [gradient, gate] = gated->second;
  if (gate.x != x || gate.mean != mean || gate.inverse != inverse) return found;
  return {gradient, x, mean, inverse, gate.weight, gate.bias};
}

Values kernel_channel_sums(Emit& e, const NormalizationGradient& of) {
  if (e.kernels() == nullptr || !all_f32({of.g, of.x, of.mean, of.inverse}) || is_small(of.x)) return {};
  const Type channels{DType::kF32, {of.x.dim(1)}};
  Values operands = {of.g, of.x, of.mean, of.inverse};
  if (of.bias) operands.insert(operands.end(), {of.weight, of.bias});
  return call_on_activations(e, stablehlo::kChannelSumsTarget, operands, {channels, channels});
}

Value kernel_normalization_gradient(Emit& e, const NormalizationGradient& of, Value weight, Value mean_g,
                                    Value mean_product) {
  if (e.kernels() == nullptr || !all_f32({of.g, of.x, of.mean, of.inverse, mean_g, mean_product}) ||
      is_small(of.x))
    return {};
  if (!weight) weight = each_channel(e, 1, of.x);
  Values operands = {of.g, of.x, of.mean, of.inverse, to(e.b, weight, DType::kF32), mean_g, mean_product};
  if (of.bias) operands.push_back(of.bias);
  return call_on_activations(e, stablehlo::kNormalizationGradientTarget, operands, {of.x.type()}, {},
                             static_cast<bool>(of.bias))[0];
}

}  // namespace sluice::ops
