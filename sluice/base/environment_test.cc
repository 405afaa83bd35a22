#include "sluice/base/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace sluice::base {
namespace {

TEST(Environment, EmptyIsUnset) {
  setenv("SLUICE_TEST_VARIABLE", "", 1);
  EXPECT_FALSE(environment("SLUICE_TEST_VARIABLE"));
  setenv("SLUICE_TEST_VARIABLE", "x", 1);
  EXPECT_EQ(environment("SLUICE_TEST_VARIABLE"), "x");
  unsetenv("SLUICE_TEST_VARIABLE");
  EXPECT_FALSE(environment("SLUICE_TEST_VARIABLE"));
}

TEST(Environment, Flags) {
  setenv("SLUICE_TEST_FLAG", "On", 1);
  EXPECT_TRUE(environment_flag("SLUICE_TEST_FLAG", false));
  setenv("SLUICE_TEST_FLAG", "0", 1);
  EXPECT_FALSE(environment_flag("SLUICE_TEST_FLAG", true));
  setenv("SLUICE_TEST_FLAG", "maybe", 1);
  EXPECT_TRUE(environment_flag("SLUICE_TEST_FLAG", true));
  unsetenv("SLUICE_TEST_FLAG");
  EXPECT_FALSE(environment_flag("SLUICE_TEST_FLAG", false));
}

}  // namespace
}  // namespace sluice::base
