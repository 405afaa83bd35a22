// Sums over all dimensions but the channels, for batch normalization, biases and the like. Internal to this
// room.
//
// If the channels are last in memory, XLA's own reductions over the leading dimensions read it column by
// column.
#pragma once

#include "sluice/kernels/call.h"
#include "sluice/kernels/rows/channels.h"

namespace sluice::kernels {

// Writes the mean and the (biased) variance of each channel. Blocks of rows are
// summed in f32, twice (the second time the distances from the first mean), and joined by Chan's formula;
// both in Chan, Golub & LeVeque, "Algorithms for computing the sample variance", 1983. So a large mean costs
// no digits. The result does not depend on the number of threads.
void moments(const Rows& size, const float* x, float* mean, float* variance);

// Writes sum[c] = Σ grad_y[r, c] and product[c] = Σ grad_y[r, c] (x[r, c] - mean[c]) inverse[c]. With `gated`
// grad_y counts as 0 where the normalized x is 0 or less; else weight and bias are not read.
void channel_sums(const Rows& size, const float* grad_y, const float* x, const ChannelScales& scales,
                  bool gated, float* sum, float* product);

// Writes sum[c] = Σ x[r, c].
void sum_of_rows(const Rows& size, const float* x, float* sum);

// Writes sum[c] = Σ x[n, c, p].
void sum_of_planes(size_t images, size_t channels, size_t pixels, const float* x, float* sum);

// Handle the calls of these sums.
base::Status call_moments(const Call& call);
base::Status call_channel_sums(const Call& call);
base::Status call_sum_of_rows(const Call& call);
base::Status call_sum_of_planes(const Call& call);

}  // namespace sluice::kernels
