// The part of the resampling family that has its own file.
#pragma once

#include "sluice/ops/common.h"

namespace sluice::ops::resample {

// grid.cc: images at the points of a grid, in 2 and 3 dimensions.
Values grid_sampler(Emit& e);
Values grid_sampler_backward(Emit& e);

}  // namespace sluice::ops::resample
