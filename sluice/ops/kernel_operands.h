// How the operands of kernels' calls lie in memory, and which of them kernels take.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "sluice/ops/emit.h"

namespace sluice::ops {

// The fastest dimension first: row-major.
inline Dims rows_layout(int64_t rank) {
  Dims layout;
  for (int64_t d = rank - 1; d >= 0; --d) layout.push_back(d);
  return layout;
}
// [N, C, …] with the channels together.
inline Dims channels_last_layout(int64_t rank) {
  Dims layout = {1};
  for (int64_t d = rank - 1; d >= 2; --d) layout.push_back(d);
  layout.push_back(0);
  return layout;
}

inline bool all_f32(std::initializer_list<Value> values) {
  return std::all_of(values.begin(), values.end(), [](Value v) { return v.dtype() == DType::kF32; });
}

// Passing over such an input costs the compiler's code no more than a call.
inline bool is_small(Value x) { return x.type().numel() < (1 << 14); }

// A call whose tensors lie in memory as `layout` says for their ranks.
inline Values call_in_layout(Emit& e, std::string_view target, const Values& operands,
                             const std::vector<Type>& results, const stablehlo::CallAttributes& attributes,
                             Dims (*layout)(int64_t rank), stablehlo::CallOptions options = {}) {
  options.pure = true;
  for (const Value v : operands) options.operand_layouts.push_back(layout(v.rank()));
  for (const Type& type : results) options.result_layouts.push_back(layout(type.rank()));
  return e.b.custom_call(target, operands, results, attributes, options);
}

// On activations, which lie with the channels last, and on what has one dimension or none.
inline Values call_on_activations(Emit& e, std::string_view target, const Values& operands,
                                  const std::vector<Type>& results,
                                  const stablehlo::CallAttributes& attributes = {}, bool in_place = false) {
  const auto layout = [](int64_t rank) { return rank > 1 ? channels_last_layout(rank) : rows_layout(rank); };
  return call_in_layout(e, target, operands, results, attributes, layout, {.in_place = in_place});
}

}  // namespace sluice::ops
