#include "sluice/train/log/histogram.h"

#include <algorithm>
#include <cmath>

namespace sluice::train {

std::vector<HistogramBucket> histogram_of(std::span<const float> values) {
  constexpr int64_t kBuckets = 30;
  std::vector<HistogramBucket> buckets(kBuckets);
  double min_value = INFINITY, max_value = -INFINITY, finite = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    min_value = std::min<double>(min_value, value);
    max_value = std::max<double>(max_value, value);
    ++finite;
  }
  if (finite == 0) return buckets;
  const double width = (max_value - min_value) / kBuckets;
  for (int64_t i = 0; i < kBuckets; ++i) {
    buckets[static_cast<size_t>(i)].left = min_value + static_cast<double>(i) * width;
    buckets[static_cast<size_t>(i)].right =
        i + 1 == kBuckets ? max_value : min_value + static_cast<double>(i + 1) * width;
  }
  if (width == 0) {
    buckets.back().count = finite;
    return buckets;
  }
  for (const float value : values)
    if (std::isfinite(value)) {
      const auto at = static_cast<int64_t>(std::floor((value - min_value) / width));
      ++buckets[static_cast<size_t>(std::min(at, kBuckets - 1))].count;
    }
  return buckets;
}

}  // namespace sluice::train
