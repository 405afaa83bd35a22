#include "sluice/base/variables.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::base {
namespace {

TEST(Variables, AreInOrder) {
  EXPECT_TRUE(std::is_sorted(known_variables().begin(), known_variables().end()));
}

TEST(Variables, WhatNobodyReadsIsToldWithWhatIsRead) {
  EXPECT_EQ(idle_variables({"PATH=/bin", "SLUICE_PLUGIN=cpu", "SLUICE_TEST_PART=1", "XLA_FLAGS=--x"}), "");
  EXPECT_EQ(idle_variables({"SLUICE_PLUGINS=tpu"}), "SLUICE_PLUGINS: did you mean SLUICE_PLUGIN?");
  EXPECT_EQ(idle_variables({"SLUICE_MY_OWN_SETTING=1"}), "SLUICE_MY_OWN_SETTING: there is no such variable");
  EXPECT_EQ(idle_variables({"XLA_USE_BF16=1", "SLUICE_PLUGIM=cpu"}),
            "SLUICE_PLUGIM: did you mean SLUICE_PLUGIN?\n"
            "XLA_USE_BF16: --precision bf16 computes in bf16 (weights stay f32)");
  for (const char* name : {"XLA_DOWNCAST_BF16", "XRT_TPU_CONFIG", "PT_XLA_DEBUG", "PJRT_DEVICE"})
    EXPECT_NE(idle_variables({std::string(name) + "=1"}), "") << name;
  EXPECT_EQ(idle_variables({"XLA_USE_BF16=0", "PJRT_DEVICE=", "SLUICE_X="}), "");
}

}  // namespace
}  // namespace sluice::base
