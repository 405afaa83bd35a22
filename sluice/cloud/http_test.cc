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

TEST(Secrets, LeaveByHttpsOrToThisMachineWhicheverHeaderHoldsThem) {
  Server server([](const Request&) { return Reply{200, {}, "there"}; });
  for (const char* header : {"Authorization: Bearer hush", "authorization: SharedKey hush",
                             "X-Amz-Security-Token: hush", "Cookie: hush", "X-IDENTITY-HEADER: hush"}) {
    HttpRequest request = get(server);
    request.headers = {"Accept: */*", header};
    EXPECT_TRUE(Http().once(request)) << header;
    for (const char* elsewhere : {"http://192.0.2.1/x?sig=hush", "http://127.0.0.1.example.org/",
                                  "http://127.0.0.1@192.0.2.1/", "192.0.2.1/x", "http://169.254.169.254/"}) {
      request.url = elsewhere;
      const auto refused = Http().once(request);
      ASSERT_FALSE(refused) << header << elsewhere;
      EXPECT_EQ(refused.error().code(), Code::kPermissionDenied) << refused.error().what();
      EXPECT_EQ(std::string(refused.error().what()).find("hush"), std::string::npos)
          << refused.error().what();
    }
  }
}

TEST(Secrets, OfAnAddressAreSomeToo) {
  HttpRequest request;
  for (const char* url : {"http://me:hush@192.0.2.1/x", "http://hush@192.0.2.1/x", "me:hush@192.0.2.1/x"}) {
    request.url = url;
    const auto refused = Http().once(request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::kPermissionDenied) << refused.error().what();
    EXPECT_EQ(std::string(refused.error().what()).find("hush"), std::string::npos) << refused.error().what();
  }
  Server server([](const Request& request) { return Reply{200, {}, request.header("authorization")}; });
  request.url = "http://me:hush@" + server.address().substr(7) + "/";
  EXPECT_EQ(Http().once(request)->body, "Basic bWU6aHVzaA==");
}

TEST(Secrets, OfABodyAreTheSendersToSay) {
  HttpRequest request;
  request.method = "POST";
  request.url = "http://192.0.2.1/token";
  request.body = "client_secret=hush";
  request.secret = {"AZURE_CLIENT_SECRET", "AZURE_AUTHORITY_HOST"};
  const auto refused = Http().once(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(std::string(refused.error().what())
                .find("AZURE_CLIENT_SECRET would go to http://192.0.2.1 unencrypted (AZURE_AUTHORITY_HOST "
                      "leads there)"),
            0u)
      << refused.error().what();
  // A cloud's agent on its machines' own network speaks http alone.
  for (const char* agent :
       {"http://169.254.130.2:8081/msi", "http://169.254.170.2/x", "http://[fd00:ec2::23]/x"}) {
    EXPECT_FALSE(may_send_secret(agent, {"x"})) << agent;
    EXPECT_TRUE(may_send_secret(agent, {"x", "", "", true})) << agent;
  }
  for (const char* other : {"http://169.254.170.2.example.org/", "http://192.0.2.1/"})
    EXPECT_FALSE(may_send_secret(other, {"x", "", "", true})) << other;
}

TEST(Secrets, AreNotTakenOnByARedirect) {
  int asked = 0;
  Server elsewhere([&](const Request&) {
    ++asked;
    return Reply{200, {}, "there"};
  });
  Server server([&](const Request&) { return Reply{302, {"Location: " + elsewhere.address() + "/b"}}; });
  HttpRequest request = get(server);
  request.follow_redirects = true;
  ASSERT_EQ(Http().once(request)->body, "there");
  request.headers = {"X-Amz-Security-Token: hush"};
  EXPECT_EQ(Http().once(request)->status, 302);
  request.headers = {};
  request.secret = {"a signature in the query"};
  EXPECT_EQ(Http().once(request)->status, 302);
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(may_redirect("https://a/x?sig=hush", "http://a/x"));
  EXPECT_FALSE(may_redirect("https://a/x", "HTTP://127.0.0.1/x"));
  for (const char* to : {"https://b/x", "/x"}) EXPECT_TRUE(may_redirect("https://a/x", to));
  EXPECT_TRUE(may_redirect("http://a/x", "http://b/x"));
}

TEST(Secrets, ForThisMachinePassNoProxy) {
  int through_proxy = 0;
  Server proxy([&](const Request&) {
    ++through_proxy;
    return Reply{200, {}, "proxy"};
  });
  Server server([](const Request&) { return Reply{200, {}, "there"}; });
  const test::Environment variable("http_proxy", proxy.address()), none("no_proxy", ""),
      upper("NO_PROXY", "");
  HttpRequest request = get(server);
  EXPECT_EQ(Http().once(request)->body, "proxy");
  request.headers = {"Authorization: Bearer hush"};
  EXPECT_EQ(Http().once(request)->body, "there");
  EXPECT_EQ(through_proxy, 1);
}

TEST(Http, AnswersHaveAnEnd) {
  Server server([](const Request& request) {
    if (request.path == "/headers") {
      Reply reply{200, {}, "x"};
      for (int i = 0; i < 40; ++i) reply.headers.push_back("X-Long: " + std::string(50'000, 'a'));
      return reply;
    }
    return Reply{200, {}, std::string(70 << 20, 'a')};
  });
  for (const char* path : {"/headers", "/body"}) {
    const auto endless = Http().once(get(server, path));
    ASSERT_FALSE(endless) << path;
    EXPECT_EQ(endless.error().code(), Code::kResourceExhausted) << endless.error().what();
  }
  HttpRequest request = get(server, "/body");
  request.max_body = 80 << 20;
  EXPECT_EQ(Http().once(request)->body.size(), std::size_t{70} << 20);
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
