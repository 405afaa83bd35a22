#include "sluice/metrics/sums.h"

namespace sluice::metrics {

void add_count(const torch::Tensor& count, const torch::Tensor& is_counted) {
  // A batch's count fits into i32, which a TPU adds faster.
  count.add_(is_counted.sum(torch::kInt).to(torch::kLong));
}

void add_sum(const torch::Tensor& sum, const torch::Tensor& values, const torch::Tensor& is_counted) {
  const torch::Tensor more = at::where(is_counted, values, at::zeros_like(values)).sum();
  // This is Knuth's TwoSum: `total` and `lost` together are exactly old + more.
  const torch::Tensor old = sum.select(0, 0), total = old + more, taken = total - old;
  const torch::Tensor lost = (old - (total - taken)) + (more - taken);
  sum.copy_(at::stack({total, sum.select(0, 1) + lost}));
}

}  // namespace sluice::metrics
