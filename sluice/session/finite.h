// Whether the values of a checkpoint are numbers that a run can go on with.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "sluice/base/result.h"
#include "sluice/session/checkpoint.h"

namespace sluice::sessions {

// Tensors of the host. Whole numbers and empty tensors are finite, and neither NaN nor infinite.
bool all_finite(const at::Tensor& tensor);
bool any_nan(const at::Tensor& tensor);

// kOutOfRange, with the first tensor that cannot be trained with. Trained parameters, what an optimizer and a
// callback keep for each of them, and averages must be finite; whatever else a model or a callback holds may
// be infinite (a mask of -inf), but not NaN. Waits for the values.
base::Status check_finite(const Snapshot& snapshot);

}  // namespace sluice::sessions
