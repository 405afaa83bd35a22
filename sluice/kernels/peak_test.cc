#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/kernels/gemm/gemm.h"
#include "sluice/kernels/install.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

// A product of the same kernel on one thread, timed here.
double own_measurement() {
  const Gemm* const gemm = find_gemm({.m = 512, .k = 512, .n = 512});
  if (gemm == nullptr) return 0;
  const UseThreads alone;
  std::vector<float> a(512 * 512, 1), b(512 * 512, 1), c(512 * 512);
  double best = 0;
  for (int i = 0; i < 10; ++i) {
    const base::Stopwatch watch;
    EXPECT_TRUE(gemm->run(a.data(), b.data(), c.data()));
    best = std::max(best, 2.0 * 512 * 512 * 512 / watch.seconds());
  }
  return best;
}

TEST(Peak, IsThatOfTheFastestKernel) {
  const double peak = measure_f32_peak(1, 8), seen = own_measurement();
  // The machine may be busy meanwhile: no close comparison.
  EXPECT_GT(peak, 0.25 * seen);
  EXPECT_LT(peak, 4 * seen + 1);
  EXPECT_EQ(peak > 0, seen > 0);
  EXPECT_EQ(measure_f32_peak(0, 8), 0);
}

// Between what any machine of today does and what none does.
TEST(Peak, BandwidthIsThatOfMemory) {
  const double bandwidth = measure_bandwidth(2, 2);
  EXPECT_GT(bandwidth, 1e8);
  EXPECT_LT(bandwidth, 1e13);
  EXPECT_EQ(measure_bandwidth(0, 2), 0);
}

}  // namespace
}  // namespace sluice::kernels
