// How far the numbers of a program are from the numbers that are wanted.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice::stablehlo {

// The largest difference, relative to the largest number that is wanted. Both have the same size.
inline double relative_error(const std::vector<float>& found, const std::vector<float>& wanted) {
  double worst = 0, scale = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    worst = std::max(worst, std::abs(double{found[i]} - wanted[i]));
    scale = std::max(scale, std::abs(double{wanted[i]}));
  }
  return worst / scale;
}

}  // namespace sluice::stablehlo
