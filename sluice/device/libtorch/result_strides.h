// The strides of an operation's results. A result's value is row-major, but the tensor over it has the
// strides that LibTorch would give it, mostly the strides of a permuted or channels-last operand. They decide
// which views of the result exist, and what a write through a view changes.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <vector>

#include "sluice/device/program/instance.h"

namespace sluice::device {

// Returns the strides of each result of a call with an operand that is not row-major; empty: row-major. Asks
// LibTorch's meta kernels once for each instance and strides. The caller holds the trace's lock.
const std::vector<std::vector<int64_t>>& result_strides(const c10::OperatorHandle& op,
                                                        c10::ArrayRef<c10::IValue> arguments,
                                                        const Instance& instance);

}  // namespace sluice::device
