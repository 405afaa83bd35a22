// Does what a recorded call did, without the call.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sluice/device/capture/tape.h"

namespace sluice::device {

// Launches the tape's programs on these arguments and on what the tensors outside hold now; `results` get what
// the function would return. False, with nothing changed, when something is not as it was when the tape was
// made: the call must be recorded. The caller holds the trace's lock, and nothing is pending. Throws what a
// cut throws; tensors that should have got a value then say so.
bool replay(const Tape& tape, const std::vector<at::Tensor>& arguments, std::vector<at::Tensor>& results);

}  // namespace sluice::device
