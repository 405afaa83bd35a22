#include "sluice/estimate/peak.h"

#include <gtest/gtest.h>

namespace sluice::estimate {
namespace {

TEST(Peak, KindsAreThoseOfTheGenerations) {
  for (const TpuGeneration& generation : tpu_generations()) {
    const auto peak = published_peak(device_kind_of(generation));
    ASSERT_TRUE(peak) << generation.name;
    EXPECT_EQ(peak->f16, peak_of(generation).f16) << generation.name;
  }
  TpuGeneration other{};
  other.name = "h100";
  EXPECT_EQ(device_kind_of(other), "");
}

TEST(Peak, OfATpuIsThatOfItsGeneration) {
  // A chip of v3 has two devices, one of v5e is one.
  EXPECT_DOUBLE_EQ(published_peak("TPU v3")->f16, 61.5e12);
  EXPECT_DOUBLE_EQ(published_peak("TPU v5 lite")->f16, 197e12);
  EXPECT_DOUBLE_EQ(published_peak("TPU v5")->f32, 459e12);
  EXPECT_EQ(published_peak("TPU v6 lite")->text(), "918 TFLOP/s bf16 (TPU v6e, published)");
}

TEST(Peak, OfAGpuIsThatOfItsName) {
  EXPECT_DOUBLE_EQ(published_peak("NVIDIA H100 80GB HBM3")->f16, 989.4e12);
  EXPECT_DOUBLE_EQ(published_peak("NVIDIA H100 PCIe")->f16, 756e12);
  EXPECT_DOUBLE_EQ(published_peak("NVIDIA A100-SXM4-80GB")->f32, 156e12);
  EXPECT_DOUBLE_EQ(published_peak("Tesla V100-SXM2-16GB")->f32, 15.7e12);
  for (const char* unknown : {"cpu", "", "NVIDIA A10G", "NVIDIA A1000", "TPU v9", "NVIDIA", "TPU v5 lite x"})
    EXPECT_FALSE(published_peak(unknown)) << unknown;
}

TEST(Peak, SaysHowLongItTakesAtLeast) {
  const Peak peak{.f32 = 10, .f16 = 40, .source = "measured"};
  EXPECT_DOUBLE_EQ(*seconds_at_peak({.f32 = 20, .f16 = 40}, peak), 3);
  EXPECT_DOUBLE_EQ(*seconds_at_peak({.f32 = 20, .f16 = 40}, peak.shared_by(4)), 12);
  EXPECT_DOUBLE_EQ(*seconds_at_peak({}, peak), 0);
  EXPECT_FALSE(seconds_at_peak({.f64 = 1}, peak));
  EXPECT_FALSE(seconds_at_peak({.f32 = 20, .loops = 1}, peak));
  EXPECT_EQ((Peak{.f32 = 118e9, .source = "measured on 2 threads"}.text()),
            "118 GFLOP/s f32 (measured on 2 threads)");
}

}  // namespace
}  // namespace sluice::estimate
