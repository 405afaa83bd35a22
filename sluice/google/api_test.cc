// The caller and long operations against a server whose answers the test gives, with a clock of its own.
#include "sluice/google/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "sluice/cloud/test_server.h"
#include "sluice/google/compute.h"
#include "sluice/google/projects.h"
#include "sluice/google/tpu.h"

namespace sluice::google {
namespace {

using cloud::test::Reply;
using cloud::test::Request;
using ::testing::HasSubstr;
using ::testing::Not;

struct World {
  explicit World(cloud::test::Server::Handler handler, bool dry = false) : server(std::move(handler)) {
    ApiOptions options;
    options.endpoint = server.address();
    options.dry_run = dry;
    options.print = [this](const std::string& text) { printed += text; };
    options.credentials =
        std::make_shared<cloud::Credentials>("the test", [this]() -> base::Result<cloud::Token> {
          return cloud::Token{"secret-" + std::to_string(++tokens), 3600};
        });
    options.http.clock.now = [this] { return time.load(); };
    options.http.clock.sleep = [this](double seconds, const std::atomic<bool>*) { time = time + seconds; };
    api = std::make_unique<Api>(options);
  }

  cloud::test::Server server;
  std::atomic<double> time{1000};
  std::atomic<int> tokens{0};
  std::string printed;
  std::unique_ptr<Api> api;
};

Call get(const std::string& path) {
  Call call;
  call.path = path;
  call.what = "the thing";
  return call;
}

TEST(Api, TriesAgainAndHonoursRetryAfter) {
  std::atomic<int> seen{0};
  World world([&](const Request&) -> Reply {
    const int n = ++seen;
    if (n == 1) return {429, {"Retry-After: 77"}, "{}"};
    if (n == 2) return {503, {}, "{}"};
    return {200, {}, R"({"a": 1})"};
  });
  const auto answer = world.api->call(get("/v2/projects/p/x"));
  ASSERT_TRUE(answer) << answer.error().what();
  EXPECT_EQ(number(*answer, "a"), 1);
  EXPECT_EQ(seen, 3);
  EXPECT_GE(world.time, 1077);
}

TEST(Api, AListThatLeadsToTheSamePageTwiceEnds) {
  World world([](const Request&) -> Reply {
    return {200, {}, R"({"items": {"zones/a": {"disks": [{"name": "x"}]}}, "nextPageToken": "again"})"};
  });
  const auto answer = world.api->pages(get("/v2/projects/p/x"), "items", nullptr);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().what(), HasSubstr("the same page twice"));
  const auto disks = Compute(*world.api, "p").aggregated("disks");
  ASSERT_FALSE(disks);
  EXPECT_THAT(disks.error().what(), HasSubstr("the same page twice"));
  EXPECT_EQ(world.server.requests(), 4);
}

TEST(Api, AQuotaIsFinal) {
  World world([](const Request&) -> Reply {
    return {429, {}, R"({"error": {"message": "Quota limit 'N' has been exceeded. Limit: 0 in region r."}})"};
  });
  const auto answer = world.api->call(get("/v2/projects/p/x"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Kind::kQuota);
  EXPECT_EQ(world.server.requests(), 1);
}

TEST(Api, ATokenThatIsRefusedIsReplacedOnce) {
  World world([](const Request& request) -> Reply {
    if (request.header("authorization") == "Bearer secret-1") return {401, {}, "{}"};
    return {200, {}, "{}"};
  });
  EXPECT_TRUE(world.api->call(get("/v2/projects/p/x")));
  EXPECT_EQ(world.tokens, 2);
  World refused([](const Request&) -> Reply { return {401, {}, "{}"}; });
  const auto answer = refused.api->call(get("/v2/projects/p/x"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Kind::kCredentials);
  EXPECT_THAT(answer.error().what(), HasSubstr("gcloud auth application-default login"));
  EXPECT_THAT(answer.error().what(), Not(HasSubstr("secret")));
}

TEST(Api, ALostAnswerOfAMutationIsMarked) {
  std::atomic<int> seen{0};
  World world([&](const Request&) -> Reply {
    if (++seen == 1) {
      Reply reply{200, {}, "{\"a\": 1}"};
      reply.cut_after = 0;
      return reply;
    }
    return {409, {}, R"({"error": {"message": "exists", "status": "ALREADY_EXISTS"}})"};
  });
  const auto answer = Tpu(*world.api, "p").create_node("z", "n", Json::object());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Kind::kExists);
  EXPECT_TRUE(answer.error().after_lost);
}

TEST(Api, ComputeSendsTheSameRequestIdAgain) {
  std::vector<std::string> ids;
  World world([&](const Request& request) -> Reply {
    ids.push_back(request.parameter("requestId"));
    if (ids.size() == 1) return {503, {}, ""};
    return {
        200, {}, R"({"status": "DONE", "selfLink": "https://h/compute/v1/projects/p/global/operations/o"})"};
  });
  const auto begun = Compute(*world.api, "p").insert(Scope::global(), "networks", {{"name", "n"}});
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->path, "/compute/v1/projects/p/global/operations/o");
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(ids[0].size(), 36u);
}

TEST(Api, DryRunPrintsMutationsAndSendsNone) {
  World world([](const Request&) -> Reply { return {200, {}, R"({"nodes": []})"}; }, /*dry=*/true);
  Tpu tpu(*world.api, "p");
  EXPECT_TRUE(tpu.nodes());
  const auto begun = tpu.create_node("z", "n", {{"acceleratorType", "v3-8"}});
  ASSERT_TRUE(begun);
  EXPECT_TRUE(wait(*world.api, *begun, {}));
  EXPECT_EQ(world.server.requests(), 1);
  EXPECT_THAT(world.printed,
              HasSubstr("POST " + world.server.address() + "/v2/projects/p/locations/z/nodes?nodeId=n"));
  EXPECT_THAT(world.printed, HasSubstr("\"acceleratorType\": \"v3-8\""));
  EXPECT_THAT(world.printed, Not(HasSubstr("secret")));
}

TEST(Api, ListsGoOverPagesAndNameWhatIsUnreachable) {
  World world([](const Request& request) -> Reply {
    if (request.parameter("pageToken").empty())
      return {200, {}, R"({"nodes": [{"name": "projects/p/locations/a/nodes/x"}], "nextPageToken": "t",
                           "unreachable": ["projects/p/locations/b"]})"};
    return {200, {}, R"({"nodes": [{"name": "projects/p/locations/c/nodes/y", "networkEndpoints":
                           [{"ipAddress": "10.0.0.2", "port": 8470, "accessConfig": {"externalIp": "1.2.3.4"}}]}]})"};
  });
  const auto listed = Tpu(*world.api, "p").nodes();
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->items.size(), 2u);
  EXPECT_EQ(listed->items[1].endpoints.at(0).external_ip, "1.2.3.4");
  EXPECT_EQ(listed->unreachable, std::vector<std::string>{"b"});
}

TEST(Operation, WaitsFailsAndMayBeEnough) {
  std::atomic<int> polls{0};
  std::string end = R"("done": true, "response": {})";
  World world([&](const Request& request) -> Reply {
    if (request.method == "POST") return {200, {}, R"({"name": "projects/p/operations/o"})"};
    ++polls;
    return {200, {}, polls < 4 ? R"({"name": "o"})" : "{" + end + "}"};
  });
  Tpu tpu(*world.api, "p");
  const auto begin = [&] {
    return base::value_or_throw(base::Result<Operation>(*tpu.create_node("z", "n", {{"a", 1}})));
  };
  EXPECT_TRUE(wait(*world.api, begin(), {}));
  EXPECT_EQ(polls, 4);
  end = R"("done": true, "error": {"code": 8, "message": "There is no more capacity in the zone"})";
  polls = 0;
  EXPECT_EQ(wait(*world.api, begin(), {}).error().kind, Kind::kNoCapacity);
  polls = -1'000'000;
  Wait how;
  how.timeout = 60;
  EXPECT_EQ(wait(*world.api, begin(), how).error().code(), Code::kDeadlineExceeded);
  how.enough = [&] { return true; };
  EXPECT_TRUE(wait(*world.api, begin(), how));
}

TEST(Projects, QuotasWithoutAPlaceAreNone) {
  World world([](const Request&) -> Reply {
    return {
        200, {}, R"({"metrics": [{"metric": "tpu.googleapis.com/N", "consumerQuotaLimits": [{"quotaBuckets": [
        {"effectiveLimit": "-1"}, {"effectiveLimit": "5"}, {"effectiveLimit": "8", "dimensions": {"zone": "z"}},
        {"effectiveLimit": "0", "dimensions": {"region": "r"}}]}]}]})"};
  });
  const auto quotas = Projects(*world.api, "p").quota_limits("tpu.googleapis.com");
  ASSERT_TRUE(quotas);
  ASSERT_EQ(quotas->size(), 2u);
  EXPECT_EQ(quotas->at(0).name, "N");
  EXPECT_EQ(quotas->at(0).limit, 8);
  EXPECT_FALSE(quotas->at(0).regional);
  EXPECT_EQ(quotas->at(1).limit, 0);
  EXPECT_EQ(quotas->at(1).place, "r");
}

TEST(Environment, EndpointsInTheClearOnlyOnThisMachine) {
  setenv("SLUICE_GOOGLE_ENDPOINT", "http://example.com", 1);
  EXPECT_FALSE(api_options_of_environment());
  setenv("SLUICE_GOOGLE_ENDPOINT", "http://127.0.0.1:9/", 1);
  const auto local = api_options_of_environment();
  ASSERT_TRUE(local);
  EXPECT_EQ(local->endpoint, "http://127.0.0.1:9");
  EXPECT_TRUE(local->credentials->anonymous());
  setenv("SLUICE_GOOGLE_TOKEN", "t", 1);
  EXPECT_FALSE(api_options_of_environment()->credentials->anonymous());
  unsetenv("SLUICE_GOOGLE_ENDPOINT");
  unsetenv("SLUICE_GOOGLE_TOKEN");
  setenv("SLUICE_GOOGLE_PROJECT", "p1", 1);
  EXPECT_EQ(default_project().value(), "p1");
  unsetenv("SLUICE_GOOGLE_PROJECT");
}

}  // namespace
}  // namespace sluice::google
