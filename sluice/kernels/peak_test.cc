#include <gtest/gtest.h>

#include "sluice/kernels/gemm/gemm.h"
#include "sluice/kernels/install.h"

namespace sluice::kernels {
namespace {

// Between what any machine of today does and what none does, where there is a kernel.
TEST(Peak, IsThatOfAKernel) {
  const double peak = measure_f32_peak(1, 8);
  EXPECT_EQ(peak > 0, find_gemm({.m = 512, .k = 512, .n = 512}) != nullptr);
  if (peak > 0) {
    EXPECT_GT(peak, 1e7);
  }
  EXPECT_LT(peak, 1e13);
  EXPECT_EQ(measure_f32_peak(0, 8), 0);
}

// The same.
TEST(Peak, BandwidthIsThatOfMemory) {
  const double bandwidth = measure_bandwidth(2, 2);
  EXPECT_GT(bandwidth, 1e8);
  EXPECT_LT(bandwidth, 1e13);
  EXPECT_EQ(measure_bandwidth(0, 2), 0);
}

}  // namespace
}  // namespace sluice::kernels
