// Lengths that depend on values and never settle: what is computed of them stays on the host.
//
// The boxes that a threshold leaves are another number each time, and each number needs programs of its own.
// Once a place of the user's code has asked for many lengths, its results stay with the host: while they are
// small, operations on them run there by LibTorch's own kernels, and so do operations on what these give.
// What is large, and what no such result has touched, stays on the device. Off with several replicas, with
// --strict, and by SLUICE_HOST_SHAPES=0.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <string_view>

#include "sluice/device/storage.h"

namespace sluice::device {

// Notes the results of the operation that is called now, whose length (of the first one) depended on values.
// The caller holds the lock.
void note_lengths_here(c10::ArrayRef<c10::IValue> results, std::string_view operation);

// The functions below say whether the host did it. Any of them may cut and wait for an operand.

// Runs an operation that has an operand that stays with the host, if all is small.
bool run_with_host(const c10::OperatorHandle& op, torch::jit::Stack* stack);
// `to` becomes `from`, in its own element type and shape.
bool copy_with_host(const at::Tensor& to, const at::Tensor& from);

// Whether the tensor's whole storage has a copy on the host that reads shall use.
bool stays_with_host(const at::Tensor& tensor);

// Forgets the places that were noted.
void forget_lengths();

void register_host_shapes();

}  // namespace sluice::device
