// Convolutions and their gradients by oneDNN. Internal to this room.
#pragma once

#include "sluice/kernels/call.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Whether the library has a fast kernel for this CPU. Makes it. Threads: any.
bool has_convolution(const stablehlo::ConvolutionCall& call);
// Where a call's tensors lie; what its kind does not use may be null. y is the gradient of y for all but
// kForward. The bias, which may be null too, is added to a result y or grad_x with the channels first.
struct ConvolutionMemory {
  void *x, *w, *y, *grad_x, *grad_w;
  const float* bias = nullptr;
};
// kFailedPrecondition without a kernel. Threads: any, under UseThreads.
base::Status run_convolution(const stablehlo::ConvolutionCall& call, const ConvolutionMemory& at);

// The handler.
base::Status call_convolution(const Call& call);

}  // namespace sluice::kernels
