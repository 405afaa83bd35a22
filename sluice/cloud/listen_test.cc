#include "sluice/cloud/listen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::cloud {
namespace {

TEST(ListenAddress, PortsAndAddresses) {
  EXPECT_EQ(parse_listen_address("9100", "the port")->host, "127.0.0.1");
  EXPECT_EQ(parse_listen_address("0.0.0.0:9100", "the port")->host, "0.0.0.0");
  EXPECT_EQ(parse_listen_address("[::]:9100", "the port")->host, "::");
  EXPECT_EQ(parse_listen_address("[::]:9100", "the port")->port, 9100);
  for (const char* wrong : {"", "x", ":1", "99999", "host:", "-1"})
    EXPECT_FALSE(parse_listen_address(wrong, "the port")) << wrong;
}

TEST(Listener, FindsAPortAndHasItAlone) {
  const auto first = Listener::open({}, "the port");
  ASSERT_TRUE(first) << first.error().what();
  EXPECT_GT(first->address().port, 0);
  const auto second = Listener::open(first->address(), "the port");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kAlreadyExists);
  EXPECT_THAT(second.error().what(), testing::HasSubstr("the port: cannot listen at 127.0.0.1 port"));
  EXPECT_EQ(Listener::open({"192.0.2.1", 0}, "the port").error().code(), Code::kUnavailable);
  EXPECT_EQ(Listener::open({"no address", 0}, "the port").error().code(), Code::kInvalidArgument);
}

TEST(Listener, TextsOfAddresses) {
  EXPECT_EQ(text_of({"127.0.0.1", 9012}), "127.0.0.1:9012");
  EXPECT_EQ(text_of({"::", 9012}), "[::]:9012");
}

}  // namespace
}  // namespace sluice::cloud
