// The functions of LibTorch that this library replaces, because LibTorch offers no other hook: torch::save,
// torch::load, raw memory and views of views for tensors of the xla device, and LBFGS's step (lbfgs.cc).
//
// A symbol of the program, or of a library in front of LibTorch, is found before LibTorch's own, even by
// LibTorch itself. Each replacement calls the original, and behaves differently only for the xla device.
#pragma once

namespace sluice::device {

// Links the replacements into the program, and warns if LibTorch's own functions are found first.
void check_overrides();

}  // namespace sluice::device
