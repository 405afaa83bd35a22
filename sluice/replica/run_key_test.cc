#include "sluice/replica/run_key.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "sluice/base/random.h"

namespace sluice::replica {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RunKey, ComesFromTheEnvironment) {
  ::unsetenv("SLUICE_RUN_KEY");
  EXPECT_EQ(*run_key(), "");
  const std::string key(32, 'k');
  ::setenv("SLUICE_RUN_KEY", key.c_str(), 1);
  EXPECT_EQ(*run_key(), key);
  ::setenv("SLUICE_RUN_KEY", "hunter2", 1);
  EXPECT_THAT(run_key().error().what(), AllOf(HasSubstr("7 characters"), Not(HasSubstr("hunter2"))));
  ::unsetenv("SLUICE_RUN_KEY");
}

TEST(Handshake, BothEndsHaveTheKey) {
  Handshake server("a key", "store"), client("a key", "store");
  const std::string reply = client.reply(server.greeting());
  EXPECT_EQ(reply.size(), Handshake::kReplyBytes);
  EXPECT_TRUE(client.accepts(server.answer(reply)));
  EXPECT_EQ(server.key_to_server(), client.key_to_server());
  EXPECT_EQ(server.key_to_client(), client.key_to_client());
  EXPECT_NE(server.key_to_server(), server.key_to_client());
}

TEST(Handshake, AnotherKeyAnotherPurposeOrAnEarlierReplyIsNoUse) {
  for (const auto& [key, purpose] : {std::pair("another key", "store"), {"", "store"}, {"a key", "ring"}}) {
    Handshake server("a key", "store"), client(key, purpose);
    EXPECT_EQ(server.answer(client.reply(server.greeting())), "");
    // Nor does the client believe a server without the key, which can only guess.
    EXPECT_FALSE(client.accepts(std::string(Handshake::kTagBytes, '\0')));
    EXPECT_FALSE(client.accepts(""));
  }
  Handshake first("a key", "store"), second("a key", "store"), client("a key", "store");
  const std::string reply = client.reply(first.greeting());
  second.greeting();
  EXPECT_EQ(second.answer(reply), "");
  // Its own words, sent back.
  Handshake mirrored("a key", "store");
  const std::string greeting = mirrored.greeting();
  EXPECT_EQ(mirrored.answer(greeting.substr(greeting.size() - 32) + std::string(32, 'x')), "");
}

TEST(Handshake, DamagedBytes) {
  for (size_t size = 0; size < 200; ++size) {
    Handshake server("k", "store"), client("k", "store");
    server.greeting();
    EXPECT_EQ(server.answer(std::string(size, 'x')), "");
    EXPECT_EQ(client.reply(std::string(size, 'x')), "");
  }
}

TEST(Seal, MessagesInTheirOrder) {
  Seal sender("key"), receiver("key");
  std::string wire, message;
  for (const std::string& text : {std::string(), std::string("one"), std::string(100'000, '\0')})
    wire += sender.close(text);
  for (const std::string& text : {std::string(), std::string("one"), std::string(100'000, '\0')}) {
    EXPECT_TRUE(*receiver.open(wire, message));
    EXPECT_EQ(message, text);
  }
  EXPECT_FALSE(*receiver.open(wire, message));
  EXPECT_EQ(Seal::missing(""), Seal::kLengthBytes);
  EXPECT_EQ(Seal::missing(std::string("\5\0\0\0abc", 7)), 2 + Seal::kTagBytes);
}

// A bit that was changed, a message that comes again, one that is left out, a length of gigabytes.
TEST(Seal, WhatWasChangedOnItsWayIsAnError) {
  std::string message;
  Seal sender("key");
  const std::string one = sender.close("the first"), two = sender.close("the second");
  for (size_t bit = 0; bit < 8 * one.size(); ++bit) {
    Seal receiver("key");
    std::string wire = one;
    wire[bit / 8] = static_cast<char>(wire[bit / 8] ^ (1 << bit % 8));
    const auto opened = receiver.open(wire, message);
    EXPECT_TRUE(!opened || !*opened) << bit;  // or it is longer now, and waits for the rest
  }
  Seal again("key");
  std::string twice = one + one;
  EXPECT_TRUE(*again.open(twice, message));
  EXPECT_FALSE(again.open(twice, message));
  Seal without_first("key");
  std::string wire = two;
  EXPECT_FALSE(without_first.open(wire, message));
  std::string huge = "\xff\xff\xff\x7f";
  EXPECT_FALSE(Seal("key").open(huge, message));
}

TEST(Seal, RandomBytesAreNoMessage) {
  base::Random random({41});
  for (int i = 0; i < 100'000; ++i) {
    std::string bytes, message;
    for (uint64_t n = random.below(40); n > 0; --n) bytes += static_cast<char>(random.below(256));
    if (!bytes.empty() && random.chance(0.5)) bytes.replace(0, std::min<size_t>(3, bytes.size()), 3, '\0');
    const auto opened = Seal("key").open(bytes, message);
    EXPECT_TRUE(!opened || !*opened);
  }
}

}  // namespace
}  // namespace sluice::replica
