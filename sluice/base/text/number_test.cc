#include "sluice/base/text/number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace sluice::base {
namespace {

TEST(Number, WholeOnes) {
  EXPECT_EQ(number_of<int>("12"), 12);
  EXPECT_EQ(number_of<int>("-3"), -3);
  EXPECT_EQ(number_of<uint64_t>("18446744073709551615"), UINT64_MAX);
}

TEST(Number, RealOnes) {
  EXPECT_EQ(number_of<double>("0.5"), 0.5);
  EXPECT_EQ(number_of<double>("-1e-3"), -1e-3);
}

TEST(Number, NothingForAnythingElse) {
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x1", "0x10", "1.5", "99999999999", "-"})
    EXPECT_FALSE(number_of<int>(text)) << text;
  EXPECT_FALSE(number_of<uint16_t>("-1"));
  EXPECT_FALSE(number_of<uint16_t>("65536"));
  for (const char* text : {"", "1.5s", "1e999", "one"}) EXPECT_FALSE(number_of<double>(text)) << text;
}

}  // namespace
}  // namespace sluice::base
