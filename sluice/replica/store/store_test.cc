// The store of a run, and strangers who come to it.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/base/files/secret.h"
#include "sluice/base/random.h"
#include "sluice/replica/admission.h"
#include "sluice/replica/store/store_client.h"
#include "sluice/replica/store/store_server.h"

namespace sluice::replica {
namespace store_testing {

using ::testing::HasSubstr;

Patience seconds(double count) { return until(base::monotonic_seconds() + count); }

TEST(StoreTable, KeepsWhatItIsGiven) {
  StoreTable table;
  const auto ask = [&](StoreOrder order, std::vector<std::string> words) {
    return table.answer({order, std::move(words)});
  };
  using Kind = StoreAnswer::Kind;
  EXPECT_EQ(ask(StoreOrder::kGet, {"a"}).kind, Kind::kNo);
  EXPECT_EQ(ask(StoreOrder::kSet, {"a", "1"}).kind, Kind::kYes);
  EXPECT_EQ(ask(StoreOrder::kGet, {"a"}).value, "1");
  EXPECT_EQ(ask(StoreOrder::kAdd, {"a", "41"}).value, "42");
  EXPECT_EQ(ask(StoreOrder::kAdd, {"b", "-3"}).value, "-3");
  EXPECT_EQ(ask(StoreOrder::kHas, {"a", "b"}).kind, Kind::kYes);
  EXPECT_EQ(ask(StoreOrder::kHas, {"a", "c"}).kind, Kind::kNo);
  EXPECT_EQ(ask(StoreOrder::kFirst, {"c", "x"}).value, "x");
  EXPECT_EQ(ask(StoreOrder::kFirst, {"c", "y"}).value, "x");
  EXPECT_EQ(ask(StoreOrder::kRemove, {"c"}).kind, Kind::kYes);
  EXPECT_EQ(ask(StoreOrder::kRemove, {"c"}).kind, Kind::kNo);
  EXPECT_EQ(ask(StoreOrder::kAdd, {"a", "x"}).kind, Kind::kRefused);
  EXPECT_EQ(ask(StoreOrder::kAdd, {"a", "9223372036854775807"}).kind, Kind::kRefused);
}

TEST(StoreTable, HasLimits) {
  StoreTable table({.key = 10, .all = 100, .keys = 3});
  const auto set = [&](const std::string& key, size_t bytes) {
    return table.answer({StoreOrder::kSet, {key, std::string(bytes, 'x')}}).kind;
  };
  using Kind = StoreAnswer::Kind;
  EXPECT_EQ(set(std::string(11, 'k'), 1), Kind::kRefused);
  EXPECT_EQ(set("a", 90), Kind::kYes);
  EXPECT_EQ(set("b", 20), Kind::kRefused);
  EXPECT_EQ(set("a", 10), Kind::kYes);  // in the place of the other
  EXPECT_EQ(set("b", 20), Kind::kYes);
  EXPECT_EQ(set("c", 0), Kind::kYes);
  EXPECT_EQ(set("d", 0), Kind::kRefused);
  EXPECT_EQ(table.answer({StoreOrder::kRemove, {"a"}}).kind, Kind::kYes);
  EXPECT_EQ(set("d", 0), Kind::kYes);
  EXPECT_EQ(table.bytes(), 23u);
}

TEST(StoreTable, DamagedRequests) {
  const std::string sound = text_of(StoreRequest{StoreOrder::kSet, {"key", "value"}});
  ASSERT_EQ(request_of(sound)->words, (std::vector<std::string>{"key", "value"}));
  for (size_t size = 0; size < sound.size(); ++size) EXPECT_FALSE(request_of(sound.substr(0, size)));
  EXPECT_FALSE(request_of(sound + "x"));
  EXPECT_FALSE(request_of(std::string("s\xff\xff\xff\xff", 5) + "abc"));
  EXPECT_FALSE(request_of("h"));
  EXPECT_FALSE(answer_of(""));
  EXPECT_FALSE(answer_of("?"));
  base::Random random({42});
  StoreTable table;
  for (int i = 0; i < 200'000; ++i) {
    std::string bytes = sound;
    for (uint64_t n = 1 + random.below(3); n > 0; --n)
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(random.chance(0.5) ? 4 : 256));
    if (const auto request = request_of(bytes)) table.answer(*request);
  }
}

struct StoreTest : ::testing::Test {
  const std::string key = base::new_secret();
  const std::unique_ptr<StoreServer> server =
      base::value_or_throw(StoreServer::start(base::value_or_throw(listen_at("127.0.0.1", 0, true)), key));
  Descriptor stranger() { return base::value_or_throw(connect_to({server->endpoint()}, seconds(10))); }
  StoreConnection known() {
    return base::value_or_throw(StoreConnection::open({server->endpoint()}, key, seconds(10)));
  }
};

TEST_F(StoreTest, WhoHasTheKeyIsAnswered) {
  auto one = known(), two = known();
  ASSERT_TRUE(one.ask({StoreOrder::kSet, {"word", std::string(3'000'000, 'w')}}, seconds(10)));
  EXPECT_EQ(two.ask({StoreOrder::kGet, {"word"}}, seconds(10))->value, std::string(3'000'000, 'w'));
  EXPECT_EQ(two.ask({StoreOrder::kAdd, {"word", "1"}}, seconds(10)).error().code(), Code::kResourceExhausted);
  EXPECT_EQ(two.ask({StoreOrder::kGet, {"none"}}, seconds(10))->kind, StoreAnswer::Kind::kNo);
}

TEST_F(StoreTest, WhoHasNotIsNot) {
  for (const std::string& other : {std::string(), base::new_secret()}) {
    const auto opened = StoreConnection::open({server->endpoint()}, other, seconds(10));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), Code::kPermissionDenied);
  }
  // An order instead of a reply: sixty-four bytes are read, and no more.
  const Descriptor socket = stranger();
  const std::string order = Seal("").close(text_of(StoreRequest{StoreOrder::kSet, {"ended", "by me"}}));
  std::string heard;
  ASSERT_TRUE(send_all(socket.number(), order + std::string(1'000, 'x'), seconds(10)));
  EXPECT_TRUE(receive(socket.number(), Handshake::kGreetingBytes, heard, seconds(10)));
  EXPECT_FALSE(receive(socket.number(), 1, heard, seconds(10)));
  EXPECT_EQ(heard.size(), Handshake::kGreetingBytes);
  auto one = known();
  EXPECT_EQ(one.ask({StoreOrder::kGet, {"ended"}}, seconds(10))->kind, StoreAnswer::Kind::kNo);
}

// Many who say nothing hold up nobody who has the key, and are closed.
TEST_F(StoreTest, StrangersWhoSayNothing) {
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 2 * StoreServer::kMaxStrangers; ++i) strangers.push_back(stranger());
  const base::Stopwatch watch;
  auto one = known();
  EXPECT_TRUE(one.ask({StoreOrder::kSet, {"a", "b"}}, seconds(10)));
  EXPECT_LT(watch.seconds(), 2);
  for (Descriptor& each : strangers) {
    std::string heard;
    (void)receive(each.number(), Handshake::kGreetingBytes, heard, seconds(10));
    EXPECT_FALSE(receive(each.number(), 1, heard, seconds(15)));
  }
  EXPECT_LT(watch.seconds(), 30);
  EXPECT_TRUE(one.ask({StoreOrder::kSet, {"a", "c"}}, seconds(10)));
}

// One who has the key and whose bytes are damaged on the way loses the connection, and nobody else does.
TEST_F(StoreTest, DamagedMessages) {
  auto other = known();
  base::Random random({43});
  for (int i = 0; i < 200; ++i) {
    const Descriptor socket = stranger();
    Handshake handshake(key, StoreServer::kPurpose);
    ASSERT_TRUE(shake_hands(socket.number(), handshake, seconds(10)));
    std::string bytes =
        Seal(handshake.key_to_server()).close(text_of(StoreRequest{StoreOrder::kSet, {"ended", "by me"}}));
    const uint64_t bit = random.below(8 * bytes.size());
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    ASSERT_TRUE(send_all(socket.number(), bytes, seconds(10)));
    ::shutdown(socket.number(), SHUT_WR);
    std::string heard;
    EXPECT_FALSE(receive(socket.number(), 1, heard, seconds(10)));
  }
  EXPECT_EQ(other.ask({StoreOrder::kGet, {"ended"}}, seconds(10))->kind, StoreAnswer::Kind::kNo);
}

// Whoever listens at the address of process 0 and has not the key learns nothing that it could use.
TEST(StoreConnection, AServerWithoutTheKey) {
  const auto listening = base::value_or_throw(listen_at("127.0.0.1", 0, true));
  const Endpoint there = own_endpoint(listening.sockets[0].number());
  const std::string key = base::new_secret();
  std::string heard;
  std::thread false_server([&] {
    Descriptor socket;
    while (socket.number() < 0)
      socket = Descriptor(::accept(listening.sockets[0].number(), nullptr, nullptr));
    Handshake handshake("a guess", StoreServer::kPurpose);
    ASSERT_TRUE(send_all(socket.number(), handshake.greeting(), seconds(10)));
    ASSERT_TRUE(receive(socket.number(), Handshake::kReplyBytes, heard, seconds(10)));
    ASSERT_TRUE(send_all(socket.number(), std::string(Handshake::kTagBytes, 'y'), seconds(10)));
    EXPECT_FALSE(receive(socket.number(), 1, heard, seconds(10)));
  });
  const auto opened = StoreConnection::open({there}, key, seconds(10));
  false_server.join();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kPermissionDenied);
  EXPECT_EQ(heard.find(key), std::string::npos);
}

TEST(Admission, TheFirstWithTheKeyAndThePurposeIsTaken) {
  const auto listening = base::value_or_throw(listen_at("127.0.0.1", 0, true));
  const Endpoint there = own_endpoint(listening.sockets[0].number());
  std::vector<Descriptor> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(base::value_or_throw(connect_to({there}, seconds(10))));
  std::thread strangers([&] {
    for (const auto& [key, purpose] : {std::pair("another", "ring"), {"a key", "something else"}})
      EXPECT_EQ(connect_known({there}, key, purpose, seconds(10)).error().code(), Code::kPermissionDenied);
    EXPECT_TRUE(connect_known({there}, "a key", "ring", seconds(10)));
  });
  EXPECT_TRUE(accept_known(listening.sockets[0].number(), "a key", "ring", seconds(20)));
  strangers.join();
}

// Without a key, on one machine: the same user and root may come. Another user is made of this process, so it
// has to be root.
TEST(StoreServer, WithoutAKeyAnotherUserIsRefused) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    auto listening = listen_at(host, 0, true);
    if (!listening) continue;  // a machine without IPv6
    const auto server = base::value_or_throw(StoreServer::start(std::move(*listening), ""));
    EXPECT_TRUE(StoreConnection::open({server->endpoint()}, "", seconds(10))) << host;
    if (::geteuid() != 0) GTEST_SKIP() << "another user can be tried by root alone";
    const pid_t other = ::fork();
    if (other == 0) {
      if (::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
      ::_exit(StoreConnection::open({server->endpoint()}, "", seconds(10)) ? 1 : 0);
    }
    int status = -1;
    ::waitpid(other, &status, 0);
    EXPECT_EQ(status, 0) << host;
  }
}

TEST(Sockets, ListenAtTheAddressThatIsNamed) {
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const auto listening = listen_at(host, 0, false);
    ASSERT_TRUE(listening) << listening.error().what();
    EXPECT_FALSE(listening->everywhere);
    for (const Descriptor& each : listening->sockets)
      EXPECT_TRUE(is_loopback(own_endpoint(each.number()))) << text_of(own_endpoint(each.number()));
  }
  // An address that is behind a translation, and a name that nobody knows here yet.
  for (const char* host : {"192.0.2.1", "host.invalid"}) {
    const auto listening = listen_at(host, 0, false);
    ASSERT_TRUE(listening) << listening.error().what();
    EXPECT_TRUE(listening->everywhere);
  }
}

}  // namespace store_testing
}  // namespace sluice::replica
