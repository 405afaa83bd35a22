#include "sluice/base/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

namespace sluice::base {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Environment, EmptyIsUnset) {
  setenv("SLUICE_TEST_VARIABLE", "", 1);
  EXPECT_FALSE(environment("SLUICE_TEST_VARIABLE"));
  EXPECT_EQ(environment_even_empty("SLUICE_TEST_VARIABLE"), "");
  setenv("SLUICE_TEST_VARIABLE", "x", 1);
  EXPECT_EQ(environment("SLUICE_TEST_VARIABLE"), "x");
  unsetenv("SLUICE_TEST_VARIABLE");
  EXPECT_FALSE(environment("SLUICE_TEST_VARIABLE"));
  EXPECT_FALSE(environment_even_empty("SLUICE_TEST_VARIABLE"));
}

TEST(Environment, Flags) {
  for (const char* on : {"1", "true", "yes", "on", "On", "YES"}) {
    setenv("SLUICE_TEST_FLAG", on, 1);
    EXPECT_TRUE(environment_flag("SLUICE_TEST_FLAG", false)) << on;
  }
  for (const char* off : {"0", "false", "no", "off", "Off", "NO"}) {
    setenv("SLUICE_TEST_FLAG", off, 1);
    EXPECT_FALSE(environment_flag("SLUICE_TEST_FLAG", true)) << off;
  }
  unsetenv("SLUICE_TEST_FLAG");
  EXPECT_FALSE(environment_flag("SLUICE_TEST_FLAG", false));
  EXPECT_TRUE(environment_flag("SLUICE_TEST_FLAG", true));
}

TEST(Environment, WhatIsNoFlagIsWarnedOf) {
  setenv("SLUICE_TEST_FLAG", "maybe", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(environment_flag("SLUICE_TEST_FLAG", true));
  EXPECT_FALSE(environment_flag("SLUICE_TEST_FLAG", false));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("SLUICE_TEST_FLAG is \"maybe\""), HasSubstr("off it is")));
  unsetenv("SLUICE_TEST_FLAG");
}

TEST(Environment, Seconds) {
  unsetenv("SLUICE_TEST_SECONDS");
  EXPECT_EQ(environment_seconds("SLUICE_TEST_SECONDS", 20, 0), 20);
  for (const auto& [text, expected] : {std::pair("0.25", 0.25), {"0", 0.0}, {"60", 60.0}}) {
    setenv("SLUICE_TEST_SECONDS", text, 1);
    EXPECT_EQ(environment_seconds("SLUICE_TEST_SECONDS", 20, 0), expected) << text;
  }
  ::testing::internal::CaptureStderr();
  for (const char* text : {"-1", "soon", "5s", "1e9", "nan"}) {
    setenv("SLUICE_TEST_SECONDS", text, 1);
    EXPECT_EQ(environment_seconds("SLUICE_TEST_SECONDS", 20, 0), 20) << text;
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("SLUICE_TEST_SECONDS is \"5s\": expected seconds, at least 0; 20 it is"));
  unsetenv("SLUICE_TEST_SECONDS");
}

}  // namespace
}  // namespace sluice::base
