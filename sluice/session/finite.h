// Checks that a run can continue with the values of a checkpoint.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "sluice/base/result.h"
#include "sluice/session/files/checkpoint.h"

namespace sluice::sessions {

// For tensors on the host. Whole numbers and empty tensors count as finite, and as neither NaN nor infinite.
bool all_finite(const at::Tensor& tensor);
bool any_nan(const at::Tensor& tensor);

// Fails with kOutOfRange and the first tensor that cannot be trained with. Trained parameters, the state that
// an optimizer or a callback keeps for each of them, and averages must be finite; other tensors of a model or
// a callback may be infinite (a mask of -inf), but not NaN. Waits for the values.
base::Status check_finite(const Snapshot& snapshot);

}  // namespace sluice::sessions
