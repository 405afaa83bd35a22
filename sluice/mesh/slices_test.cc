#include "sluice/mesh/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(AxesBetweenSlices, OnlyDataSpansThem) {
  const std::vector<int64_t> halves = {0, 0, 0, 0, 1, 1, 1, 1};
  EXPECT_EQ(axes_between_slices(Mesh({{"data", 2}, {"fsdp", 4}}), halves), "");
  EXPECT_EQ(axes_between_slices(Mesh({{"data", 2}, {"fsdp", 2}, {"tensor", 2}}), halves), "");
  EXPECT_EQ(axes_between_slices(Mesh({{"fsdp", 8}}), {0, 0, 0, 0, 0, 0, 0, 0}), "");
  EXPECT_THAT(axes_between_slices(Mesh({{"fsdp", 8}}), halves),
              HasSubstr("fsdp=8 of the mesh fsdp=8 spans slices: devices 0 and 4 exchange weights"));
  EXPECT_THAT(axes_between_slices(Mesh({{"sequence", 4}, {"tensor", 2}}), halves),
              HasSubstr("sequence=4 of the mesh sequence=4,tensor=2 spans slices: devices 0 and 4 exchange "
                        "activations"));
  EXPECT_THAT(axes_between_slices(Mesh({{"data", 4}, {"tensor", 2}}), {0, 1, 0, 1, 0, 1, 0, 1}),
              HasSubstr("tensor=2 of the mesh data=4,tensor=2 spans slices: devices 0 and 1"));
}

}  // namespace
}  // namespace sluice
