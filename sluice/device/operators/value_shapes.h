// Indexing with masks, whose results have shapes that depend on values.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace sluice::device {

// Calls an operation of indices (aten::index, index_put) with positions in place of its masks of bool, which
// the host reads. Does nothing and returns false for any other call.
bool index_by_positions(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace sluice::device
