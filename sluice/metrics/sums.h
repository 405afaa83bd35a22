// Sums on the device.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace sluice::metrics {

inline torch::Tensor zero_counts(std::vector<int64_t> sizes) { return torch::zeros(sizes, torch::kLong); }
// Returns f32 [2]: a sum, and its rounding error.
inline torch::Tensor zero_sum() { return torch::zeros({2}, torch::kFloat); }

// Adds the number of true elements to `count`, int64 [1].
void add_count(const torch::Tensor& count, const torch::Tensor& is_counted);
// Adds the counted elements of `values` to a sum. Elements that are not counted may be anything, NaN too.
// Both tensors have one shape.
void add_sum(const torch::Tensor& sum, const torch::Tensor& values, const torch::Tensor& is_counted);

// Returns part ÷ whole, or 0 if `whole` is 0.
inline double share(double part, double whole) { return whole != 0 ? part / whole : 0; }

}  // namespace sluice::metrics
