#include "sluice/base/hostlist.h"

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
}

TEST(Hostlist, ExplainsWhatIsNoList) {
  for (const char* list :
       {"", "a,,b", "a,", "n[1-3", "n1-3]", "n[[1]]", "n[3-1]", "n[a-b]", "n[]", "n[1-]", "n[-1]", "n[1 2]",
        "n[0-99999999]", "n[0-999]m[0-999]", "n[0-99999],m[0-99999]", "n[0-18446744073709551616]"}) {
    EXPECT_FALSE(expand_hostlist(list)) << list;
  }
  EXPECT_THAT(expand_hostlist("n[3-1]").error().what(), HasSubstr("\"3-1\""));
}

TEST(Hostlist, HostAndPort) {
  EXPECT_EQ(host_and_port("10.0.0.2", 8476), "10.0.0.2:8476");
  EXPECT_EQ(host_and_port("fd00::2", 8476), "[fd00::2]:8476");
  EXPECT_EQ(host_and_port("[fd00::2]", 8476), "[fd00::2]:8476");
}

}  // namespace
}  // namespace sluice::base
