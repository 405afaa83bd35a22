// The parts of the index family that have their own files.
#pragma once

#include "sluice/ops/common.h"

namespace sluice::ops::index {

// index_advanced.cc: x[i, :, j] with index tensors.
Values advanced_get(Emit& e);
Values advanced_put(Emit& e);
Values masked_scatter(Emit& e);
Values masked_scatter_backward(Emit& e);

// ordering.cc: sorting, selecting by rank, searching.
Values sort(Emit& e);
Values topk(Emit& e);
Values kthvalue(Emit& e);
Values median(Emit& e);
Values mode(Emit& e);
Values searchsorted(Emit& e);
Values bucketize(Emit& e);
Values isin(Emit& e);

// embedding_bag.cc
Values embedding_bag(Emit& e);
Values embedding_bag_backward(Emit& e);
Values embedding_bag_weights_backward(Emit& e);
Values embedding_renorm(Emit& e);

// counting.cc: histograms, and the positions of elements that are not 0.
Values histc(Emit& e);
Values histogram(Emit& e);
Values histogramdd(Emit& e);
Values nonzero_static(Emit& e);

// segment.cc: reductions of runs of rows.
Values segment_reduce(Emit& e);
Values segment_reduce_backward(Emit& e);

}  // namespace sluice::ops::index
