// Whether factorizations succeeded: LibTorch's `info`, which linalg_inv and its like look at before they
// return. A look at each would be a cut and a wait; the statuses of a program are copied behind its launch
// and looked at when the host next waits or reads, as value_checks.h does with positions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::device {

// Looks at the status at the end of the launch that makes it. `matrix`: of one matrix, not of a batch. The
// caller holds the trace's lock, here and below.
void note_status(const at::Tensor& info, std::string_view operation, bool matrix);
// Behind a launch: starts the copies of the statuses that it made.
void copy_statuses();
// Throws WrongValue, which is also a c10::Error with LibTorch's text, when a factorization in this launch or
// in one before it did not succeed. Waits for their copies.
void check_statuses(int64_t launch);
// Drops those that have no launch yet, as that failed; all of them.
void forget_pending_statuses();
void forget_statuses();

void register_factor_statuses();

}  // namespace sluice::device
