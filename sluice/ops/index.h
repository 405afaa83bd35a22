// The parts of the index family that have files of their own.
#pragma once

#include "sluice/ops/common.h"

namespace sluice::ops::index {

// index_advanced.cc: x[i, :, j] with index tensors.
Values advanced_get(Emit& e);
Values advanced_put(Emit& e);

// ordering.cc: sorting, selecting by rank, searching.
Values sort(Emit& e);
Values topk(Emit& e);
Values kthvalue(Emit& e);
Values median(Emit& e);
Values searchsorted(Emit& e);
Values bucketize(Emit& e);
Values isin(Emit& e);

}  // namespace sluice::ops::index
