#include "sluice/ops/kernel_calls.h"

#include <algorithm>
#include <numeric>

namespace sluice::ops {
namespace {

// The fastest dimension first.
Dims rows_layout(int64_t rank) {
  Dims layout(static_cast<size_t>(rank));
  std::iota(layout.rbegin(), layout.rend(), 0);
  return layout;
}
Dims channels_last_layout(int64_t rank) {
  Dims layout = {1};
  for (int64_t d = rank - 1; d >= 2; --d) layout.push_back(d);
  layout.push_back(0);
  return layout;
}

bool all_f32(std::initializer_list<Value> values) {
  return std::all_of(values.begin(), values.end(), [](Value v) { return v.dtype() == DType::kF32; });
}

stablehlo::CallAttributes attributes_of(const stablehlo::ConvolutionCall& call) {
  return {{"kind", static_cast<int64_t>(call.kind)},
          {"stride", call.stride},
          {"padding", call.padding},
          {"dilation", call.dilation},
          {"groups", call.groups}};
}

// Reading such an input column by column costs the compiler's reduction nothing.
bool is_small(Value x) { return x.type().numel() < (1 << 14); }

}  // namespace

Value kernel_convolution(Emit& e, const stablehlo::ConvolutionCall& call, Value first, Value second) {
  using Kind = stablehlo::ConvolutionCall::Kind;
  if (e.kernels() == nullptr || !all_f32({first, second}) || !e.kernels()->has(call)) return {};
  const Dims activation = channels_last_layout(first.rank()), weight = rows_layout(first.rank());
  stablehlo::CallOptions options{.pure = true};
  options.operand_layouts = {activation, call.kind == Kind::kWeights ? activation : weight};
  options.result_layouts = {call.kind == Kind::kWeights ? weight : activation};
  const Dims& result = call.kind == Kind::kForward ? call.y : (call.kind == Kind::kData ? call.x : call.w);
  const Value operands[] = {first, second};
  return e.b.custom_call(stablehlo::ConvolutionCall::kTarget, operands, {{DType::kF32, result}},
                         attributes_of(call), options)[0];
}

Values kernel_convolution_backward(Emit& e, stablehlo::ConvolutionCall call, Value x, Value w, Value grad) {
  call.kind = stablehlo::ConvolutionCall::Kind::kBackward;
  if (e.kernels() == nullptr || !all_f32({x, w, grad}) || !e.kernels()->has(call)) return {};
  const Dims activation = channels_last_layout(x.rank()), weight = rows_layout(x.rank());
  stablehlo::CallOptions options{.pure = true};
  options.operand_layouts = {activation, weight, activation};
  options.result_layouts = {activation, weight};
  const Value operands[] = {x, w, grad};
  return e.b.custom_call(stablehlo::ConvolutionCall::kTarget, operands, {x.type(), w.type()},
                         attributes_of(call), options);
}

Value kernel_product(Emit& e, Value a, Value b) {
  const int64_t rank = a.rank();
  const bool fit = a.dim(rank - 1) == b.dim(rank - 2) && (rank == 2 || a.dim(0) == b.dim(0));
  if (e.kernels() == nullptr || !all_f32({a, b}) || !fit) return {};
  stablehlo::ProductCall call{.m = a.dim(rank - 2), .k = a.dim(rank - 1), .n = b.dim(rank - 1)};
  Dims result = {call.m, call.n};
  if (rank == 3) result.insert(result.begin(), call.batch = a.dim(0));
  Value operands[] = {a, b};
  if (const Value straight = e.b.untransposed(a)) operands[0] = straight, call.transposed_a = true;
  if (const Value straight = e.b.untransposed(b)) operands[1] = straight, call.transposed_b = true;
  if (!e.kernels()->has(call)) return {};
  stablehlo::CallOptions options{.pure = true};
  options.operand_layouts = {rows_layout(rank), rows_layout(rank)};
  options.result_layouts = {rows_layout(rank)};
  return e.b.custom_call(
      stablehlo::ProductCall::kTarget, operands, {{DType::kF32, result}},
      {{"transposed_a", int64_t{call.transposed_a}}, {"transposed_b", int64_t{call.transposed_b}}},
      options)[0];
}

Values kernel_moments(Emit& e, Value x, Value eps, const Values& running) {
  if (e.kernels() == nullptr || !all_f32({x}) || is_small(x)) return {};
  Values operands = {x, eps};
  stablehlo::CallOptions options{.pure = true};
  options.operand_layouts = {channels_last_layout(x.rank()), {}};
  if (!running.empty()) {
    operands.insert(operands.end(), running.begin(), running.end());
    options.operand_layouts.insert(options.operand_layouts.end(), {{}, {0}, {0}});
  }
  const std::vector<Type> results(running.empty() ? 3 : 5, {DType::kF32, {x.dim(1)}});
  options.result_layouts.assign(results.size(), {0});
  return e.b.custom_call(stablehlo::kMomentsTarget, operands, results, {}, options);
}

Values kernel_channel_sums(Emit& e, Value g, Value x, Value mean, Value inverse) {
  if (e.kernels() == nullptr || !all_f32({g, x, mean, inverse}) || is_small(x)) return {};
  const Type channels{DType::kF32, {x.dim(1)}};
  const Dims activation = channels_last_layout(x.rank());
  stablehlo::CallOptions options{.pure = true};
  options.operand_layouts = {activation, activation, {0}, {0}};
  options.result_layouts = {{0}, {0}};
  const Value operands[] = {g, x, mean, inverse};
  return e.b.custom_call(stablehlo::kChannelSumsTarget, operands, {channels, channels}, {}, options);
}

Value kernel_max_pooling_gradient(Emit& e, Value x, Value grad, const Dims& kernel, const Dims& stride,
                                  const Dims& padding, const Dims& dilation) {
  const bool batched = x.rank() == static_cast<int64_t>(kernel.size()) + 2;
  if (e.kernels() == nullptr || !batched || !all_f32({x, grad}) || is_small(x)) return {};
  const Dims activation = channels_last_layout(x.rank());
  stablehlo::CallOptions options{.pure = true};
  options.operand_layouts = {activation, activation};
  options.result_layouts = {activation};
  const Value operands[] = {x, grad};
  return e.b.custom_call(
      stablehlo::kMaxPoolingGradientTarget, operands, {x.type()},
      {{"kernel", kernel}, {"stride", stride}, {"padding", padding}, {"dilation", dilation}}, options)[0];
}

}  // namespace sluice::ops
