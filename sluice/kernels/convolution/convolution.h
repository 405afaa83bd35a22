// Convolutions and their gradients by oneDNN. Internal to this room.
#pragma once

#include "sluice/kernels/call.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Returns whether the library has a fast kernel for this CPU, and makes the kernel. Threads: any.
bool has_convolution(const stablehlo::ConvolutionCall& call);
// The memory of a call's tensors; tensors that the call's kind does not use may be null. y is the gradient of
// y for all kinds but kForward. The bias, which may be null too, is added to a result y or grad_x with the
// channels first.
struct ConvolutionMemory {
  void *x, *w, *y, *grad_x, *grad_w;
  const float* bias = nullptr;
};
// Runs a call; kFailedPrecondition without a kernel. Threads: any, under UseThreads.
base::Status run_convolution(const stablehlo::ConvolutionCall& call, const ConvolutionMemory& at);

// Handles a call of "sluice_convolution".
base::Status call_convolution(const Call& call);

}  // namespace sluice::kernels
