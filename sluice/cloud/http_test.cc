#include "sluice/cloud/http.h"

#include "sluice/cloud/certificates.h"
#include "sluice/cloud/test_support.h"

namespace sluice::cloud {
namespace {

using test::Reply;
using test::Request;
using test::Server;

HttpRequest get(const Server& server, const std::string& path = "/") {
  HttpRequest request;
  request.url = server.address() + path;
  return request;
}

TEST(Http, ConnectionsAreUsedAgain) {
  Server server([](const Request& request) { return Reply{200, {"X-Path: " + request.path}, "hello"}; });
  Http http;
  for (int i = 0; i < 5; ++i) {
    const auto response = http.once(get(server, "/a"));
    ASSERT_TRUE(response) << response.error().what();
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, "hello");
    EXPECT_EQ(response->header("x-path"), "/a");
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(Http, BodiesAreSent) {
  const std::string body = test::random_bytes(300'000);
  Server server([](const Request& request) { return Reply{200, {}, request.method + request.body}; });
  Http http;
  for (const char* method : {"POST", "PUT"}) {
    HttpRequest request = get(server);
    request.method = method;
    request.body = body;
    const auto response = http.once(request);
    ASSERT_TRUE(response) << response.error().what();
    EXPECT_EQ(response->body, method + body);
  }
}

TEST(Http, TransientFailuresAreTriedAgain) {
  int count = 0;
  Server server([&](const Request&) {
    ++count;
    if (count == 1) return Reply{503};
    if (count == 2) return Reply{408};
    if (count == 3) return Reply{200, {}, "cut off", 3};
    return Reply{200, {}, "there"};
  });
  test::FakeTime time;
  Http http(test::options_with(time));
  const auto response = http.send(get(server), "a request");
  ASSERT_TRUE(response) << response.error().what();
  EXPECT_EQ(response->body, "there");
  // 1, 2, 4 seconds, each with a jitter between a half and the whole.
  const auto sleeps = time.sleeps();
  ASSERT_EQ(sleeps.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_GE(sleeps[i], 0.5 * (1 << i));
    EXPECT_LE(sleeps[i], 1 << i);
  }
}

TEST(Http, RetryAfterIsHonoured) {
  int count = 0;
  Server server([&](const Request&) {
    return ++count <= 2 ? Reply{429, {"Retry-After: 17"}} : Reply{200, {}, "there"};
  });
  test::FakeTime time;
  Http http(test::options_with(time));
  ASSERT_TRUE(http.send(get(server), "a request"));
  EXPECT_EQ(time.sleeps(), (std::vector<double>{17, 17}));
}

TEST(Http, GivesUpInTheEnd) {
  Server server([](const Request&) { return Reply{503, {}, R"({"error":{"message":"backend down"}})"}; });
  test::FakeTime time;
  Http http(test::options_with(time));
  const test::Quiet quiet;
  const auto response = http.send(get(server), "a request");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kUnavailable);
  EXPECT_NE(std::string(response.error().what())
                .find("a request: the server answered with status 503: backend down"),
            std::string::npos);
  EXPECT_NE(std::string(response.error().what()).find("given up after"), std::string::npos);
  double total = 0;
  for (const double sleep : time.sleeps()) {
    EXPECT_LE(sleep, 32);
    total += sleep;
  }
  EXPECT_GT(total, 250);
  EXPECT_LE(total, 300);
}

TEST(Http, OtherStatusesAreAnswers) {
  Server server([](const Request&) { return Reply{404, {}, "nothing here"}; });
  Http http;
  const auto response = http.send(get(server), "a request");
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 404);
  EXPECT_EQ(status_error(*response, "x").code(), Code::kNotFound);
  EXPECT_EQ(server.requests(), 1);
}

TEST(Http, NobodyListens) {
  Http http;
  HttpRequest request;
  request.url = "http://127.0.0.1:1/";
  const auto response = http.once(request);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kUnavailable);
}

TEST(Http, CertificatesAreLookedForAndTheMessageSaysWhere) {
  const test::Environment none("CURL_CA_BUNDLE", "");
  const test::Environment unset("SSL_CERT_FILE", "");
  EXPECT_EQ(certificate_file({"/absent", "/etc/passwd", "/etc/group"}), "/etc/passwd");
  EXPECT_EQ(certificate_file({"/absent"}), std::nullopt);
  const test::Environment chosen("SSL_CERT_FILE", "/absent/authorities.pem");
  EXPECT_EQ(certificate_file({"/etc/passwd"}), "/absent/authorities.pem");

  Server server([](const Request&) { return Reply{200}; });
  HttpRequest request = get(server);
  request.url.replace(0, 4, "https");
  const auto response = Http().once(request);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kFailedPrecondition) << response.error().what();
  EXPECT_NE(std::string(response.error().what()).find("/absent/authorities.pem: SSL_CERT_FILE names another"),
            std::string::npos)
      << response.error().what();
}

TEST(Http, StallsEnd) {
  Server server([](const Request&) { return Reply{200, {}, "hello", 2, true}; });
  HttpOptions options;
  options.stall_timeout = 0.2;
  Http http(options);
  const auto response = http.once(get(server));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kUnavailable);
  EXPECT_NE(std::string(response.error().what()).find("stalled"), std::string::npos);
}

TEST(Http, CancellingEndsAStall) {
  std::atomic<bool> reached{false}, cancelled{false};
  Server server([&](const Request&) {
    reached = true;
    return Reply{200, {}, "hello", 2, true};
  });
  Http http;
  HttpRequest request = get(server);
  request.cancelled = &cancelled;
  std::thread canceller([&] {
    while (!reached) std::this_thread::yield();
    cancelled = true;
  });
  const auto response = http.once(request);
  canceller.join();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kCancelled);
}

TEST(Http, QueriesStayOutOfMessages) {
  Server server([](const Request&) { return Reply{200, {}, "hello", 2}; });
  Http http;
  const auto response = http.once(get(server, "/a?signature=secret"));
  ASSERT_FALSE(response);
  EXPECT_EQ(std::string(response.error().what()).find("secret"), std::string::npos)
      << response.error().what();
}

TEST(Http, PolicyOfTheEnvironment) {
  {
    const test::Environment environment("SLUICE_CLOUD_RETRY", "0.01:0.5:9");
    const auto policy = retry_policy_of_environment();
    ASSERT_TRUE(policy);
    EXPECT_EQ(policy->first, 0.01);
    EXPECT_EQ(policy->give_up, 9);
  }
  const test::Environment environment("SLUICE_CLOUD_RETRY", "soon");
  EXPECT_FALSE(retry_policy_of_environment());
}

}  // namespace
}  // namespace sluice::cloud
