#include "sluice/base/text/hostlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::base {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Hostlist, Expands) {
  EXPECT_THAT(*expand_hostlist("a"), ElementsAre("a"));
  EXPECT_THAT(*expand_hostlist("a, b,10.0.0.3"), ElementsAre("a", "b", "10.0.0.3"));
  EXPECT_THAT(*expand_hostlist("node[01-03,7],login1"),
              ElementsAre("node01", "node02", "node03", "node7", "login1"));
  EXPECT_THAT(*expand_hostlist("n[9-11]"), ElementsAre("n9", "n10", "n11"));
  EXPECT_THAT(*expand_hostlist("n[099-101]-ib"), ElementsAre("n099-ib", "n100-ib", "n101-ib"));
  EXPECT_THAT(*expand_hostlist("r[1-2]n[5,6]"), ElementsAre("r1n5", "r1n6", "r2n5", "r2n6"));
  EXPECT_THAT(*expand_hostlist("user@b,fd00::2"), ElementsAre("user@b", "fd00::2"));
  EXPECT_THAT(*expand_hostlist("[fd00::1], me@[::1],[fe80::1%eth0]"),
              ElementsAre("fd00::1", "me@::1", "fe80::1%eth0"));
}

TEST(Hostlist, ExplainsWhatIsNoList) {
  for (const char* list : {"", "a,,b", "a,", "n[1-3", "n1-3]", "n[[1]]", "n[3-1]", "n[a-b]", "n[]", "n[1-]",
                           "n[-1]", "n[1 2]", "[fd00::1]:22", "[fd00::1]x", "[fd00:]", "n[0-99999999]",
                           "n[0-999]m[0-999]", "n[0-99999],m[0-99999]", "n[0-18446744073709551616]"}) {
    EXPECT_FALSE(expand_hostlist(list)) << list;
  }
  EXPECT_THAT(expand_hostlist("n[3-1]").error().what(), HasSubstr("\"3-1\""));
  EXPECT_THAT(expand_hostlist("[fd00::1]:22").error().what(),
              HasSubstr("after the address fd00::1: expected a host without a port"));
}

TEST(Hostlist, HostAndPort) {
  EXPECT_EQ(host_and_port("10.0.0.2", 8476), "10.0.0.2:8476");
  EXPECT_EQ(host_and_port("fd00::2", 8476), "[fd00::2]:8476");
  EXPECT_EQ(host_and_port("[fd00::2]", 8476), "[fd00::2]:8476");
}

TEST(Hostlist, SplitHostAndPort) {
  const std::pair<const char*, HostAndPort> good[] = {
      {"10.0.0.2:8476", {"10.0.0.2", 8476}},
      {"node-1", {"node-1", 0}},
      {"a.b:1", {"a.b", 1}},
      {"[fd00::2]:65535", {"fd00::2", 65535}},
      {"[::1]", {"::1", 0}},
      {"fd00::1:8476", {"fd00::1:8476", 0}},  // an address: no brackets
      {"::1", {"::1", 0}},
      {"[fe80::1%eth0]:8476", {"fe80::1%eth0", 8476}},
      {"[::ffff:10.0.0.2]:80", {"::ffff:10.0.0.2", 80}}};
  for (const auto& [text, parts] : good) {
    const auto found = split_host_and_port(text);
    ASSERT_TRUE(found) << found.error().what();
    EXPECT_EQ(*found, parts) << text;
  }
  for (const char* text :
       {"", ":8476", "a:", "a:0", "a:65536", "a:x", "a:1x", "a:-1", "a: 1", "[]:1", "[::1", "[::1]1",
        "[::1]:", "[::1]:0", "[a]:1", "[10.0.0.2]:1", "a:b:c", "1:2:3:4:5:6:7:8:9", "[[::1]]:1"})
    EXPECT_FALSE(split_host_and_port(text)) << text;
  EXPECT_THAT(
      split_host_and_port("a:b:\x1b").error().what(),
      testing::AllOf(HasSubstr("\"a:b:"), HasSubstr("[fd00::2]:8476"), testing::Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace sluice::base
