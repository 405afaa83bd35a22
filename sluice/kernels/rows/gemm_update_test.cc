#include "sluice/kernels/rows/gemm_update.h"

#include <gtest/gtest.h>

#include "sluice/kernels/lanes.h"

namespace sluice::kernels {
namespace {

TEST(ProductUpdate, IsForGradientsThatAreLargeBesideTheirProduct) {
  if (!has_lanes8()) GTEST_SKIP() << "no registers for it";
  EXPECT_TRUE(has_gemm_update({.m = 1024, .k = 128, .n = 784, .transposed_a = true}));
  EXPECT_FALSE(has_gemm_update({.m = 1024, .k = 128, .n = 784}));
  EXPECT_FALSE(has_gemm_update({.m = 1024, .k = 2048, .n = 784, .transposed_a = true}));
  EXPECT_FALSE(has_gemm_update({.m = 10, .k = 128, .n = 1024, .transposed_a = true}));
  EXPECT_FALSE(has_gemm_update({.batch = 2, .m = 1024, .k = 128, .n = 784, .transposed_a = true}));
}

}  // namespace
}  // namespace sluice::kernels
