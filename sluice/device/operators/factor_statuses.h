// Checks whether factorizations succeeded: LibTorch's `info`, which linalg_inv and similar functions check
// before they return. Each check would be a cut and a wait. So the statuses of a program are copied after its
// launch and checked when the host next waits or reads, as value_checks.h does with positions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::device {

// Has the status checked at the end of the launch that makes it. `matrix`: it belongs to one matrix, not to a
// batch. The caller holds the trace's lock, here and below.
void note_status(const at::Tensor& info, std::string_view operation, bool matrix);
// Starts the copies of the statuses that a launch made; call it after the launch.
void copy_statuses();
// Throws WrongValue, which is also a c10::Error with LibTorch's text, if a factorization in this launch or in
// an earlier one failed. Waits for their copies.
void check_statuses(int64_t launch);
// Drop the statuses without a launch, because it failed; drop all statuses.
void forget_pending_statuses();
void forget_statuses();

void register_factor_statuses();

}  // namespace sluice::device
