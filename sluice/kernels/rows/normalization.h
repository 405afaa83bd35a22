// Batch normalization with known statistics, and its gradient, each in one pass over the memory. Internal to
// this room.
#pragma once

#include "sluice/kernels/call.h"
#include "sluice/kernels/rows/channels.h"

namespace sluice::kernels {

// Computes y = max(0, normalized x + other). `other` is null or as large as x; it is normalized too if
// `other_scales` is not null. A NaN stays NaN.
void normalize(const Rows& size, const float* x, const ChannelScales& scales, const float* other,
               const ChannelScales* other_scales, float* y);

// Computes x's gradient: (grad_y - mean_grad[c] - (x - mean[c]) inverse[c] mean_product[c]) inverse[c]
// weight[c]. mean_grad and mean_product are the means of grad_y and of grad_y (x - mean) inverse. With
// `gated` grad_y counts as 0 where the normalized x is 0 or less; else bias is not read.
void normalization_gradient(const Rows& size, const float* grad_y, const float* x,
                            const ChannelScales& scales, bool gated, const float* mean_grad,
                            const float* mean_product, float* grad_x);

// Handle the calls of normalization.
base::Status call_normalize(const Call& call);
base::Status call_normalization_gradient(const Call& call);

}  // namespace sluice::kernels
