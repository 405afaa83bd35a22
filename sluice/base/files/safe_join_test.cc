#include "sluice/base/files/safe_join.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::base {
namespace {

TEST(SafeJoin, NamesBelowTheFolder) {
  EXPECT_EQ(*safe_join("/a", "b"), "/a/b");
  EXPECT_EQ(*safe_join("a/", "b/c.txt"), "a/b/c.txt");
  EXPECT_EQ(*safe_join("a", "..b/c.."), "a/..b/c..");
}

TEST(SafeJoin, NothingThatLeadsOut) {
  for (const std::string name :
       {"", "/etc/passwd", "..", "../b", "b/../../c", "b/..", "./b", "b//c", "b/", "b\n", "b\x1b[2J"}) {
    const auto joined = safe_join("/a", name);
    ASSERT_FALSE(joined) << name;
    EXPECT_EQ(joined.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(std::string(joined.error().what()).find('\x1b'), std::string::npos);
  }
  EXPECT_FALSE(safe_join("/a", std::string_view("b\0c", 3)));
}

}  // namespace
}  // namespace sluice::base
