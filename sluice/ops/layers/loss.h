// The parts of the loss family that have their own files.
#pragma once

#include "sluice/ops/common.h"

namespace sluice::ops::loss {

// Reductions, with LibTorch's numbers.
enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

// ctc.cc
Values ctc(Emit& e);
Values ctc_backward(Emit& e);

// margin.cc
Values multi_margin(Emit& e);
Values multi_margin_backward(Emit& e);
Values multilabel_margin(Emit& e);
Values multilabel_margin_backward(Emit& e);

}  // namespace sluice::ops::loss
