// The functions of LibTorch that this library replaces, because LibTorch has no other way in: what
// torch::save, torch::load and raw memory do with tensors of the xla device, and LBFGS's step (lbfgs.cc).
//
// A symbol of the program, or of a library that stands before LibTorch's, is found before LibTorch's own one,
// also by LibTorch itself. Each replacement calls the original, and differs from it for the xla device alone.
#pragma once

namespace sluice::device {

// Links the replacements into the program, and warns when LibTorch's own ones are found first.
void check_overrides();

}  // namespace sluice::device
