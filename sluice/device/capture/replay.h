// Repeats the effects of a recorded call, without the call.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <string>
#include <vector>

#include "sluice/device/capture/tape.h"

namespace sluice::device {

// Launches the tape's programs on these arguments and on the current values of the tensors outside; sets
// `results` to what the function would return. Returns "" after a replay. If something differs from the time
// when the tape was made, changes nothing and returns what differs; the call must then be recorded. The
// caller holds the trace's lock, and nothing is pending. After a replay, the caller calls tape.after and
// throws `wrong`, the error of a value that an earlier program found and that is not allowed. Throws what a
// cut throws; reading a tensor that got no value then reports it.
std::string replay(const Tape& tape, const std::vector<at::Tensor>& arguments,
                   std::vector<at::Tensor>& results, std::exception_ptr& wrong);

}  // namespace sluice::device
