#include "sluice/kernels/peaks.h"

#include <gtest/gtest.h>

#include "sluice/kernels/onednn.h"

namespace sluice::kernels {
namespace {

// Between what any CPU of today does and what none does.
TEST(Peaks, AreThoseOfACpu) {
  if (!Onednn::open()) GTEST_SKIP() << "no oneDNN";
  const profile::Peaks& peaks = measured_peaks();
  if (peaks.flops_per_second > 0) {
    EXPECT_GT(peaks.flops_per_second, 1e8);
    EXPECT_LT(peaks.flops_per_second, 1e14);
  }
  EXPECT_GT(peaks.bytes_per_second, 1e8);
  EXPECT_LT(peaks.bytes_per_second, 1e13);
  EXPECT_NE(peaks.source.find("measured on "), std::string::npos) << peaks.source;
  EXPECT_EQ(&measured_peaks(), &peaks) << "measured once";
}

}  // namespace
}  // namespace sluice::kernels
