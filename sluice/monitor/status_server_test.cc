#include "sluice/monitor/status_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/process.h"
#include "sluice/cloud/http.h"
#include "sluice/monitor/host_report.h"

namespace sluice::monitor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class StatusServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("SLUICE_STATUS_DIR", folder_.path().c_str(), 1);
    ::setenv("TPU_RUNTIME_METRICS_PORTS", "1", 1);  // where nothing listens
    server_ = base::value_or_throw(StatusServer::start("0", ::getpid()));
  }
  void TearDown() override {
    ::unsetenv("SLUICE_STATUS_DIR");
    ::unsetenv("TPU_RUNTIME_METRICS_PORTS");
  }
  int connect() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  // The first line of the answer to a request of these lines.
  std::string ask(const std::string& lines) const {
    const int socket = connect();
    const std::string text = lines + "\r\n\r\n";
    EXPECT_EQ(::send(socket, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    std::string answer;
    char bytes[4096];
    for (ssize_t count = 1; count > 0;) {
      count = ::recv(socket, bytes, sizeof bytes, 0);
      if (count > 0) answer.append(bytes, static_cast<size_t>(count));
    }
    ::close(socket);
    return answer.substr(0, answer.find("\r\n"));
  }
  cloud::HttpResponse get(const std::string& path, const std::string& method = "GET") {
    cloud::HttpRequest request;
    request.method = method;
    request.url = base::str("http://127.0.0.1:", server_->port(), path);
    request.direct = true;
    return base::value_or_throw(http_.once(request));
  }

  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
  std::unique_ptr<StatusServer> server_;
  cloud::Http http_;
};

TEST_F(StatusServerTest, SaysWhatTheProcessesOfTheRunHaveWritten) {
  StatusFile file;
  ProcessStatus status;
  status.identity = own_identity();
  status.identity.run = "r";
  status.step = 120;
  status.step_ms = 41.5;
  status.shares = {0.5, 0.25, 0.25};
  status.time = base::wall_seconds();
  file.write(status);
  for (const auto& [name, run] : {std::pair("1.json", "r"), std::pair("2.json", "another")}) {
    ProcessStatus other = status;
    other.identity.process = name[0] - '0';
    other.identity.index = name[0] - '0';
    other.identity.namespaces = "pid:[1]";
    other.identity.run = run;
    other.step_p95_ms = 50.5;
    other.mfu = 0.375;
    other.memory_in_use = int64_t{3} << 30;
    base::value_or_throw(base::write_file_atomically(folder_.path(name), text_of(other)));
  }
  const auto metrics = get("/metrics");
  EXPECT_EQ(metrics.status, 200);
  EXPECT_THAT(metrics.body, HasSubstr("# TYPE sluice_step gauge\nsluice_step{process=\"0\"} 120\n"
                                      "sluice_step{process=\"1\"} 120\n"));
  EXPECT_THAT(metrics.body, HasSubstr("sluice_step_seconds{process=\"0\"} 0.0415\n"));
  EXPECT_THAT(metrics.body, HasSubstr("sluice_input_share{process=\"1\"} 0.5\n"));
  EXPECT_THAT(metrics.body, Not(HasSubstr("process=\"2\"")));
  EXPECT_THAT(metrics.body, HasSubstr("sluice_step_p95_seconds{process=\"1\"} 0.0505\n"));
  EXPECT_THAT(metrics.body, HasSubstr("# TYPE sluice_mfu gauge\nsluice_mfu{process=\"1\"} 0.375\n"));
  EXPECT_THAT(metrics.body, HasSubstr("sluice_memory_used_bytes{process=\"1\"} 3221225472\n"));
  EXPECT_THAT(metrics.body, Not(HasSubstr("sluice_tokens_per_second")));  // not known: not said
  const auto report = parse_report(get("/status").body);
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_EQ(report->processes.size(), 2u);
}

TEST_F(StatusServerTest, ProcessesOfSeveralSlicesHaveALabelOfTheirSlice) {
  StatusFile file;
  ProcessStatus status;
  status.identity = own_identity();
  status.identity.slice = 1;
  status.step = 7;
  status.time = base::wall_seconds();
  file.write(status);
  EXPECT_THAT(get("/metrics").body, HasSubstr("\nsluice_step{process=\"0\",slice=\"1\"} 7\n"));
}

TEST_F(StatusServerTest, OneOfTheProcessesThatHaveMet) {
  StatusFile file;
  ProcessStatus status;
  status.identity = own_identity();
  status.identity.run = "";
  status.identity.coordinator = "h:1234";
  status.time = base::wall_seconds();
  file.write(status);
  for (const auto& [name, coordinator] :
       {std::pair("1.json", "h:1234"), std::pair("2.json", "h:9"), std::pair("3.json", "")}) {
    ProcessStatus other = status;
    other.identity.process = other.identity.index = name[0] - '0';
    other.identity.namespaces = "pid:[1]";
    other.identity.coordinator = coordinator;
    base::value_or_throw(base::write_file_atomically(folder_.path(name), text_of(other)));
  }
  EXPECT_EQ(parse_report(get("/status").body)->processes.size(), 2u);
  EXPECT_THAT(get("/status").body, Not(HasSubstr("h:1234")));  // where they meet is not shown
  const auto one = parse_report(get("/status?process=1").body);
  ASSERT_EQ(one->processes.size(), 1u);
  EXPECT_EQ(one->processes[0].status.identity.process, 1);
  EXPECT_THAT(get("/metrics?process=1").body, HasSubstr("sluice_step{process=\"1\"}"));
  EXPECT_THAT(get("/metrics?process=1").body, Not(HasSubstr("process=\"0\"")));
  EXPECT_EQ(get("/status?process=2").status, 404);
  EXPECT_EQ(get("/status?process=x").status, 400);
}

TEST_F(StatusServerTest, OtherRequests) {
  EXPECT_EQ(get("/").status, 404);
  EXPECT_EQ(get("/metrics", "DELETE").status, 405);
  EXPECT_EQ(get("/metrics?x=1").status, 200);
}

TEST_F(StatusServerTest, ConnectionsThatSayNothingOrTooMuchAreClosed) {
  for (const std::string& text :
       {std::string("GET /metr"), std::string(100'000, 'x'), std::string("\r\n\r\n")}) {
    const int socket = connect();
    ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    ::shutdown(socket, SHUT_WR);
    ::close(socket);
  }
  EXPECT_EQ(get("/metrics").status, 200);
}

// Many that say nothing, and one that says a letter every now and then, hold up nobody.
TEST_F(StatusServerTest, IdleConnectionsHoldUpNobody) {
  std::vector<int> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(connect());
  const base::Stopwatch watch;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(get("/metrics").status, 200);
    ::send(idle.back(), "G", 1, MSG_NOSIGNAL);
  }
  EXPECT_LT(watch.seconds(), 2);
  // All are closed, soon.
  char byte;
  for (const int socket : idle) {
    pollfd polled{socket, POLLIN, 0};
    EXPECT_EQ(::poll(&polled, 1, 10'000), 1);
    EXPECT_LE(::recv(socket, &byte, 1, 0), 0);
    ::close(socket);
  }
  EXPECT_LT(watch.seconds(), 8);
}

TEST_F(StatusServerTest, ARequestForAnotherHostIsRefused) {
  const std::string get_it = "GET /status HTTP/1.1\r\nUser-Agent: a browser\r\n";
  for (const std::string& host :
       {std::string("localhost"), std::string("LocalHost:9100"), std::string("127.0.0.1"),
        std::string("[::1]:9100"), std::string("10.1.2.3:80"), base::host_name()})
    EXPECT_THAT(ask(get_it + "Host: " + host), HasSubstr(" 200 ")) << host;
  EXPECT_THAT(ask("GET /status HTTP/1.0"), HasSubstr(" 200 "));
  for (const char* host : {"attacker.example", "attacker.example:9100", "localhost.attacker.example",
                           "127.0.0.1.nip.io", "", "[attacker.example]"})
    EXPECT_THAT(ask(get_it + "hOsT:" + host), HasSubstr(" 421 ")) << host;
}

TEST_F(StatusServerTest, ListensAtAnAddressOfIpv6) {
  const auto server = StatusServer::start("[::1]:0", ::getpid());
  if (!server) GTEST_SKIP() << "this machine has no IPv6: " << server.error().what();
  cloud::HttpRequest request;
  request.url = base::str("http://[::1]:", (*server)->port(), "/status");
  request.direct = true;
  EXPECT_EQ(base::value_or_throw(http_.once(request)).status, 200);
  request.url = base::str("http://127.0.0.1:", (*server)->port(), "/status");
  EXPECT_FALSE(http_.once(request));  // there it does not listen
}

TEST_F(StatusServerTest, APortInUse) {
  const auto second = StatusServer::start(std::to_string(server_->port()), 1);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kAlreadyExists);
  EXPECT_THAT(second.error().what(), HasSubstr("choose another port"));
}

}  // namespace
}  // namespace sluice::monitor
