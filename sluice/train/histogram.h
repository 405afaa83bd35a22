// How values are spread, as TensorBoard's own summaries of histograms count them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::train {

struct HistogramBucket {
  double left = 0, right = 0;  // of its values
  double count = 0;
  bool operator==(const HistogramBucket&) const = default;
};

// TensorBoard's 30 buckets of equal width from the smallest to the largest value. Of values that are all
// equal the last one has them all. Values that are not finite do not count; without any others all buckets
// are 0.
std::vector<HistogramBucket> histogram_of(std::span<const float> values);

}  // namespace sluice::train
