// What the patterns' calls of kernels share: how operands lie in memory, and which of them kernels take. All
// tensors of kernels are f32 (see stablehlo/kernel_library.h). Internal to this room.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "sluice/stablehlo/operation.h"
#include "sluice/stablehlo/rewriter.h"

namespace sluice::patterns {

using stablehlo::Builder;
using stablehlo::CallAttributes;
using stablehlo::Dims;
using stablehlo::DType;
using stablehlo::Operation;
using stablehlo::Rewriter;
using stablehlo::Type;
using stablehlo::Value;
using stablehlo::Values;

// The order of dimensions in memory, the fastest one first: row-major; [N, C, …] with the channels together.
Dims rows_layout(int64_t rank);
Dims channels_last_layout(int64_t rank);

// Whether those that are there are.
bool all_f32(std::initializer_list<Value> values);
bool all_f32(const Values& values);
// Passing over such an input costs the compiler's code no more than a call.
inline bool is_small(Value x) { return x.type().numel() < (1 << 14); }
// Whether it is a sum over some dimensions.
bool is_sum(const Operation& op);

// A call on tensors that are row-major. in_place: how many results take the memory of the first operands.
Values call_on_rows(Builder& b, std::string_view target, const Values& operands,
                    const std::vector<Type>& results, const CallAttributes& attributes = {},
                    size_t in_place = 0);
// The first result, of the first operand's type, takes its memory; `others` are the results behind it. The
// kernel reads that operand, and those of the same dims, as rows, whatever dims they are counted by. It is
// given them as the first one was before its reshapes: XLA copies what is reshaped before it is written to.
Values call_on_rows_in_place(const Rewriter& r, std::string_view target, Values operands,
                             const std::vector<Type>& others, const CallAttributes& attributes = {});
// On activations, which lie with the channels last, and on what has one dimension or none.
Values call_on_activations(Builder& b, std::string_view target, const Values& operands,
                           const std::vector<Type>& results, const CallAttributes& attributes = {},
                           size_t in_place = 0);
// In layouts of one's own: one for each operand, then one for each result.
Values call_in_layouts(Builder& b, std::string_view target, const Values& operands,
                       const std::vector<Type>& results, const CallAttributes& attributes,
                       const std::vector<Dims>& layouts);

}  // namespace sluice::patterns
