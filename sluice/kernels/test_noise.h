// Random numbers for tests.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace sluice::kernels {

// Returns normal numbers, the same in each run.
inline std::vector<float> noise(size_t count, unsigned seed, float deviation = 1, float mean = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> x(count);
  for (float& value : x) value = normal(random);
  return x;
}

}  // namespace sluice::kernels
