#include "sluice/estimate/gpu_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::estimate {
namespace {

using testing::HasSubstr;

TEST(GpuSlices, HaveACountOrAreOne) {
  const auto one = find_slice("H100");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->name, "h100-1");
  EXPECT_EQ(one->plugin, "cuda");
  EXPECT_EQ(one->devices, 1);
  const auto eight = find_slice("h200-8");
  ASSERT_TRUE(eight);
  EXPECT_EQ(eight->devices, 8);
  EXPECT_EQ(eight->hosts, 1);
  EXPECT_EQ(eight->topology, "1x1x8");
  EXPECT_EQ(eight->generation->memory_gib, 141);
}

TEST(GpuSlices, OtherNames) {
  EXPECT_EQ(find_slice("v3-8")->plugin, "tpu");
  EXPECT_THAT(find_slice("h100-3").error().what(), HasSubstr("known: a100-1, a100-2"));
  EXPECT_THAT(find_slice("h300").error().what(), HasSubstr("unknown TPU slice 'h300'"));
}

TEST(GpuSlices, EachOfThemIsFound) {
  for (const std::string& name : gpu_slice_names()) EXPECT_EQ(find_gpu_slice(name)->name, name);
}

}  // namespace
}  // namespace sluice::estimate
