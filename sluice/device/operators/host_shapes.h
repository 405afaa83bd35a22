// Keeps results on the host whose lengths depend on values and never settle.
//
// A threshold leaves a different number of boxes each time, and each number needs its own programs. Once a
// place of the user's code has asked for many lengths, its results stay with the host: while they are small,
// LibTorch's own kernels run operations on them there, and also operations on the results of those. Large
// values, and values that no such result has touched, stay on the device. Off with several replicas, with
// --strict, and by SLUICE_HOST_SHAPES=0.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <string_view>

#include "sluice/device/storage.h"

namespace sluice::device {

// Notes the results of the operation that is running now, whose first length depended on values. The caller
// holds the lock.
void note_lengths_here(c10::ArrayRef<c10::IValue> results, std::string_view operation);

// The functions below return whether the host did the work. Any of them may cut and wait for an operand.

// Runs an operation that has an operand that stays with the host, if all operands are small.
bool run_with_host(const c10::OperatorHandle& op, torch::jit::Stack* stack);
// Copies `from` to `to`, keeping the element type and shape of `to`.
bool copy_with_host(const at::Tensor& to, const at::Tensor& from);

// Returns whether the tensor's whole storage has a copy on the host that reads are to use.
bool stays_with_host(const at::Tensor& tensor);

// Forgets the places and their lengths.
void forget_lengths();

void register_host_shapes();

}  // namespace sluice::device
