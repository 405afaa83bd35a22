#include "sluice/pod/tpu_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::pod {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// As published for v2 and v3 (hosts of 2x2 chips), v5e and v6e.
TEST(TpuGrid, OfTwoDimensions) {
  EXPECT_EQ(*chip_grid("", 4), "2,2,1");
  EXPECT_EQ(*chip_grid("", 8), "2,4,1");      // v5litepod-8, v3-16
  EXPECT_EQ(*chip_grid("", 16), "4,4,1");     // v3-32
  EXPECT_EQ(*chip_grid("", 32), "4,8,1");     // v3-64
  EXPECT_EQ(*chip_grid("", 512), "16,32,1");  // v3-1024
  EXPECT_THAT(chip_grid("", 12).error().what(), HasSubstr("--tpu-topology"));
}

TEST(TpuGrid, AsItIsSaid) {
  EXPECT_EQ(*chip_grid("4x4", 16), "4,4,1");
  EXPECT_EQ(*chip_grid("2x2x4", 16), "2,2,4");
  EXPECT_EQ(*chip_grid("3x4", 12), "3,4,1");
  EXPECT_EQ(*chip_grid("4", 4), "4,1,1");
}

TEST(TpuGrid, WhatCannotBe) {
  EXPECT_THAT(chip_grid("4x4", 8).error().what(), AllOf(HasSubstr("4x4 has 16 chips"), HasSubstr("are 8")));
  for (const char* text : {"4x", "x", "0x4", "-2x2", "4 x 4", "1x2x2x4", "v9-8", "99999999999x1"})
    EXPECT_THAT(chip_grid(text, 16).error().what(), HasSubstr("expected the chips along each side")) << text;
}

TEST(TpuGrid, UsualSlices) {
  EXPECT_TRUE(is_usual_slice(1, 4));
  EXPECT_TRUE(is_usual_slice(1, 8));
  EXPECT_TRUE(is_usual_slice(4, 4));
  EXPECT_FALSE(is_usual_slice(2, 8));  // a host of 8 chips is alone
  EXPECT_FALSE(is_usual_slice(3, 4));
  EXPECT_FALSE(is_usual_slice(1, 2));
}

}  // namespace
}  // namespace sluice::pod
