// What the algorithms for convolutions share. Internal to this room.
#pragma once

#include "sluice/base/result.h"

namespace sluice::kernels {

// Where the operands and results of a call lie: x and y or their gradients, w or its gradient.
struct ConvolutionTensors {
  void *x, *w, *y;
  const float* bias = nullptr;  // what is added to each channel of a result y or x, if these come first
};

// A convolution of one kind and one shape. Threads: any, under UseThreads.
class ConvolutionKernel {
 public:
  virtual ~ConvolutionKernel() = default;
  virtual base::Status run(const ConvolutionTensors& at) const = 0;
};

}  // namespace sluice::kernels
