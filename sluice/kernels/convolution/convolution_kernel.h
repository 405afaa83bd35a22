// The interface of the algorithms for convolutions. Internal to this room.
#pragma once

#include "sluice/base/result.h"

namespace sluice::kernels {

// The memory of a call's operands and results: x and y or their gradients, w or its gradient.
struct ConvolutionTensors {
  void *x, *w, *y;
  const float* bias = nullptr;  // added to each channel of a result y or x with the channels first
};

// A convolution of one kind and one shape. Threads: any, under UseThreads.
class ConvolutionKernel {
 public:
  virtual ~ConvolutionKernel() = default;
  virtual base::Status run(const ConvolutionTensors& at) const = 0;
};

}  // namespace sluice::kernels
