// The distribution of values, counted as TensorBoard's own summaries of histograms count it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::train {

struct HistogramBucket {
  double left = 0, right = 0;  // the limits of its values
  double count = 0;
  bool operator==(const HistogramBucket&) const = default;
};

// Returns TensorBoard's 30 buckets of equal width from the smallest to the largest value. If all values are
// equal, the last bucket has them all. Values that are not finite do not count; if there are no finite ones,
// all buckets are 0.
std::vector<HistogramBucket> histogram_of(std::span<const float> values);

}  // namespace sluice::train
