// Does what a recorded call did, without the call.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <string>
#include <vector>

#include "sluice/device/capture/tape.h"

namespace sluice::device {

// Launches the tape's programs on these arguments and on what the tensors outside hold now; `results` get
// what the function would return. When something is not as it was when the tape was made, nothing is changed,
// the call must be recorded, and what is returned says what it is; else "". The caller holds the trace's
// lock, and nothing is pending; behind it the caller calls tape.after and throws `wrong`, a value that an
// earlier program found to be none that may be. Throws what a cut throws; tensors that should have got a
// value then say so.
std::string replay(const Tape& tape, const std::vector<at::Tensor>& arguments,
                   std::vector<at::Tensor>& results, std::exception_ptr& wrong);

}  // namespace sluice::device
