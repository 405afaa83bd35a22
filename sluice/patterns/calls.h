// Shared by the patterns' calls of kernels: the layout of operands in memory, and the operands that kernels
// accept. All tensors of kernels are f32 (see stablehlo/kernel_library.h). Internal to this room.
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

// The order of dimensions in memory, the fastest one first: row-major, and [N, C, …] with the channels last.
Dims rows_layout(int64_t rank);
Dims channels_last_layout(int64_t rank);

// Returns whether all values that are not empty are f32.
bool all_f32(std::initializer_list<Value> values);
bool all_f32(const Values& values);
// Returns whether XLA's own code passes over such an input in no more time than a call takes.
inline bool is_small(Value x) { return x.type().numel() < (1 << 14); }
// Returns whether the operation is a sum over some dimensions.
bool is_sum(const Operation& op);

// Adds a call on tensors that are row-major. in_place: the number of results that take the memory of the
// first operands.
Values call_on_rows(Builder& b, std::string_view target, const Values& operands,
                    const std::vector<Type>& results, const CallAttributes& attributes = {},
                    size_t in_place = 0);
// Adds a call whose first result has the first operand's type and takes its memory; `others` are the further
// results. The kernel reads the first operand, and those with the same dims, as rows, so their other dims may
// differ. They are passed with the dims that the first one had before its reshapes: XLA copies a reshaped
// value before it is overwritten.
Values call_on_rows_in_place(const Rewriter& r, std::string_view target, Values operands,
                             const std::vector<Type>& others, const CallAttributes& attributes = {});
// Adds a call on activations, which have the channels last, and on values with at most one dimension.
Values call_on_activations(Builder& b, std::string_view target, const Values& operands,
                           const std::vector<Type>& results, const CallAttributes& attributes = {},
                           size_t in_place = 0);
// Adds a call with a layout for each operand, then one for each result.
Values call_in_layouts(Builder& b, std::string_view target, const Values& operands,
                       const std::vector<Type>& results, const CallAttributes& attributes,
                       const std::vector<Dims>& layouts);

}  // namespace sluice::patterns
