#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/cloud/test_server.h"
#include "sluice/train/tracking/mlflow_run.h"
#include "sluice/train/tracking/mlflow_spool.h"

namespace sluice::train {
namespace {

using cloud::test::Reply;
using cloud::test::Request;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// What a tracking server has, as far as these tests ask it. tests/python/mlflow_oracle.py asks MLflow itself.
class FakeMlflow {
 public:
  // Before an answer; something else than nothing is the answer.
  std::function<std::optional<Reply>(const Request&)> trouble;
  // The request is done, and its answer is lost.
  std::function<bool(const Request&)> loses_answer;

  void set_trouble(std::function<std::optional<Reply>(const Request&)> now) {
    const std::lock_guard lock(mutex);
    trouble = std::move(now);
  }

  Reply operator()(const Request& request) {
    const std::lock_guard lock(mutex);
    ++asked[request.path.substr(request.path.rfind("mlflow/") + 7)];
    if (trouble)
      if (auto reply = trouble(request)) return *reply;
    Reply reply = answer(request);
    if (loses_answer && loses_answer(request)) reply.cut_after = 0;
    return reply;
  }

  std::mutex mutex;
  std::map<std::string, int> asked;
  std::vector<json> runs;  // runs/create
  // key, step, timestamp, value as text; how often it came.
  std::map<std::tuple<std::string, int64_t, int64_t, std::string>, int> points;
  std::map<std::string, std::string> parameters, tags;
  std::vector<std::string> statuses;
  std::size_t largest = 0;  // metrics of a request

 private:
  static Reply error(int status, const char* code, const std::string& message) {
    return {.status = status, .body = json({{"error_code", code}, {"message", message}}).dump()};
  }
  Reply answer(const Request& request) {
    const std::string path = request.path.substr(request.path.rfind("mlflow/") + 7);
    if (path == "experiments/get-by-name")
      return has_experiment ? Reply{.body = R"({"experiment": {"experiment_id": "7"}})"}
                            : error(404, "RESOURCE_DOES_NOT_EXIST", "no such experiment");
    const json body = request.method == "POST" ? json::parse(request.body) : json();
    if (path == "experiments/create") {
      has_experiment = true;
      return {.body = R"({"experiment_id": "7"})"};
    }
    if (path == "runs/create") {
      runs.push_back(body);
      return {.body = json({{"run", {{"info", {{"run_id", base::str("run", runs.size())}}}}}}).dump()};
    }
    if (path == "runs/search") {
      json found = json::array();
      for (std::size_t i = 0; i < runs.size(); ++i)
        if (body["filter"].get<std::string>().find(runs[i]["tags"][0]["value"].get<std::string>()) !=
            std::string::npos)
          found.push_back({{"info", {{"run_id", base::str("run", i + 1)}}}});
      return {.body = json({{"runs", found}}).dump()};
    }
    if (path == "runs/get") return {.body = R"({"run": {"info": {"lifecycle_stage": "active"}}})"};
    if (path == "runs/update") {
      statuses.push_back(body["status"]);
      return {.body = "{}"};
    }
    if (path != "runs/log-batch") return error(404, "ENDPOINT_NOT_FOUND", path);
    largest = std::max(largest, body["metrics"].size());
    for (const json& metric : body["metrics"])
      if (metric["key"] == "train/bad") return error(400, "INVALID_PARAMETER_VALUE", "train/bad is bad");
    for (const json& metric : body["metrics"])
      ++points[{metric["key"], metric["step"], metric["timestamp"], metric["value"].dump()}];
    for (const json& parameter : body["params"]) {
      const auto [known, is_new] = parameters.emplace(parameter["key"], parameter["value"]);
      if (!is_new && known->second != parameter["value"])
        return error(400, "INVALID_PARAMETER_VALUE", "Changing param values is not allowed");
    }
    for (const json& tag : body["tags"]) tags[tag["key"]] = tag["value"];
    return {.body = "{}"};
  }
  bool has_experiment = false;
};

class Mlflow : public testing::Test {
 protected:
  MlflowOptions options(const cloud::test::Server& server) const {
    return {.uri = server.address(),
            .experiment = "digits",
            .run_name = "one",
            .authorization = "",
            .shown_folder = folder_.path(),
            .limits = {.connect = 1, .request = 1},
            .every = 0.01,
            .longest = 0.1};
  }
  std::unique_ptr<MlflowRun> start(const cloud::test::Server& server, std::optional<int64_t> last_step = {},
                                   const std::vector<HyperParameter>& parameters = {{"lr", 0.1}}) const {
    auto run = base::value_or_throw(MlflowRun::open(options(server), folder_.path(), last_step));
    base::value_or_throw(run->begin(parameters, {{"sluice.version", "1"}}));
    return run;
  }
  static void rows(MlflowRun& run, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step)
      base::value_or_throw(
          run.metrics({{"train/loss", 1.0 / static_cast<double>(step)}}, step, 1000.0 + step));
  }
  // That each of these steps came, and no other.
  void expect_steps(int64_t first, int64_t last) {
    std::multiset<int64_t> steps;
    for (const auto& [point, times] : fake_.points) steps.insert(std::get<1>(point));
    ASSERT_EQ(static_cast<int64_t>(steps.size()), last - first + 1);
    for (int64_t step = first; step <= last; ++step) EXPECT_EQ(steps.count(step), 1u) << step;
  }
  int64_t max_times() const {
    int max_seen = 0;
    for (const auto& [point, times] : fake_.points) max_seen = std::max(max_seen, times);
    return max_seen;
  }
  std::string read(const char* name) const {
    return base::value_or_throw(base::read_file(folder_.path(name)));
  }

  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
  FakeMlflow fake_;
};

TEST_F(Mlflow, NamesAreWhatMlflowTakes) {
  EXPECT_EQ(mlflow_name("test/Top-5_a.b c:d"), "test/Top-5_a.b c:d");
  EXPECT_EQ(mlflow_name("loss(ä)%"), "loss_____");
  EXPECT_EQ(mlflow_name("/a//b/../c/."), "_/a/_/b/__/c/_");
  EXPECT_EQ(mlflow_name(""), "_");
  EXPECT_EQ(mlflow_name(std::string(300, 'x')).size(), 250u);
  EXPECT_EQ(cut_text("aä", 2), "a");
  EXPECT_EQ(cut_text("aä", 3), "aä");
}

TEST_F(Mlflow, AddressesThatAreNoneAreRefused) {
  EXPECT_TRUE(check_mlflow_uri("http://127.0.0.1:5000"));
  EXPECT_TRUE(check_mlflow_uri("https://example.org/mlflow/"));
  for (const char* uri : {"databricks", "mlruns", "http://", "http://:5000", "http://a b", "http://a?x"})
    EXPECT_FALSE(check_mlflow_uri(uri)) << uri;
  const auto secret = check_mlflow_uri("http://me:hunter2@host");
  ASSERT_FALSE(secret);
  EXPECT_THAT(secret.error().what(),
              testing::AllOf(HasSubstr("MLFLOW_TRACKING_USERNAME"), testing::Not(HasSubstr("hunter2"))));
}

TEST_F(Mlflow, SecretsAreSentByHttpsOrToThisMachine) {
  EXPECT_TRUE(check_mlflow_secret("https://example.org", "Bearer x"));
  EXPECT_TRUE(check_mlflow_secret("http://127.0.0.1:5000", "Bearer x"));
  EXPECT_TRUE(check_mlflow_secret("http://example.org", ""));
  for (const char* const uri :
       {"http://example.org", "http://127.0.0.1.example.org", "http://10.0.0.5:5000"}) {
    EXPECT_THAT(check_mlflow_secret(uri, "Bearer hunter2").error().what(),
                testing::AllOf(HasSubstr("MLFLOW_TRACKING_TOKEN"), testing::Not(HasSubstr("hunter2"))));
    EXPECT_THAT(check_mlflow_secret(uri, "Basic x").error().what(), HasSubstr("MLFLOW_TRACKING_PASSWORD"));
  }
}

TEST_F(Mlflow, TheServerThatAFolderNamesGetsNoTokenOfThisUser) {
  std::atomic<int> with_token = 0;
  fake_.trouble = [&](const Request& request) -> std::optional<Reply> {
    with_token += !request.header("authorization").empty();
    return std::nullopt;
  };
  const cloud::test::Server server(std::ref(fake_));
  auto run = start(server);
  rows(*run, 1, 5);
  EXPECT_EQ(base::value_or_throw(run->end("FINISHED", 20)), 0);
  run.reset();
  ::setenv("MLFLOW_TRACKING_TOKEN", "secret", 1);
  testing::internal::CaptureStderr();
  base::value_or_throw(send_to_mlflow(folder_.path(), "", 5));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("gets no token and no password"));
  EXPECT_EQ(with_token, 0);
  ::unsetenv("MLFLOW_TRACKING_TOKEN");
}

TEST_F(Mlflow, EachRowArrivesOnceInRequestsWithinTheLimits) {
  const cloud::test::Server server(std::ref(fake_));
  auto run = start(server);
  rows(*run, 1, 2500);
  base::value_or_throw(run->metrics({{"train/a", std::nan("")}, {"train/b", -INFINITY}}, 2501, 7));
  EXPECT_EQ(base::value_or_throw(run->end("FINISHED", 20)), 0);
  EXPECT_EQ(fake_.points.count({"train/a", 2501, 7000, "\"NaN\""}), 1u);
  EXPECT_EQ(fake_.points.count({"train/b", 2501, 7000, "\"-Infinity\""}), 1u);
  EXPECT_EQ(fake_.points.count({"train/loss", 4, 1004000, "0.25"}), 1u);
  EXPECT_EQ(fake_.points.size(), 2502u);
  EXPECT_EQ(max_times(), 1);
  EXPECT_LE(fake_.largest, 1000u);
  ASSERT_EQ(fake_.runs.size(), 1u);
  EXPECT_EQ(fake_.runs[0]["experiment_id"], "7");
  EXPECT_EQ(fake_.runs[0]["run_name"], "one");
  EXPECT_EQ(fake_.parameters["lr"], "0.1");
  EXPECT_EQ(fake_.tags["sluice.version"], "1");
  EXPECT_THAT(fake_.statuses, ElementsAre("FINISHED"));
}

TEST_F(Mlflow, AServerThatComesLateAndLosesAnswersGetsEveryRow) {
  std::atomic<bool> there{false};
  int batches = 0;
  fake_.trouble = [&](const Request&) -> std::optional<Reply> {
    if (there) return std::nullopt;
    return Reply{.status = 503, .body = "starting"};
  };
  // Done, but whoever asked does not know: of each kind of request the first, and every second batch.
  std::set<std::string> kinds;
  fake_.loses_answer = [&](const Request& request) {
    const bool batch = request.path.find("log-batch") != std::string::npos;
    return batch ? batches++ % 2 == 0 : kinds.insert(request.path).second;
  };
  const cloud::test::Server server(std::ref(fake_));
  testing::internal::CaptureStderr();
  auto run = start(server);
  rows(*run, 1, 50);
  while (server.requests() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  there = true;
  for (int64_t step = 51; step <= 100; ++step) {
    rows(*run, step, step);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(base::value_or_throw(run->end("FINISHED", 20)), 0);
  const std::string said = testing::internal::GetCapturedStderr();
  expect_steps(1, 100);
  EXPECT_GT(max_times(), 1);  // the same point again, which MLflow keeps once
  EXPECT_EQ(fake_.runs.size(), 1u) << "a run was made twice";
  EXPECT_THAT(said, HasSubstr("takes the rows again"));
}

TEST_F(Mlflow, AServerThatNeverAnswersHoldsUpNothing) {
  fake_.trouble = [](const Request&) { return Reply{.cut_after = 0, .stall = true}; };
  const cloud::test::Server server(std::ref(fake_));
  testing::internal::CaptureStderr();
  const base::Stopwatch rows_time;
  auto run = start(server);
  rows(*run, 1, 200);
  EXPECT_LT(rows_time.seconds(), 1);  // 200 lines on a disk
  const base::Stopwatch end_time;
  const int64_t left = base::value_or_throw(run->end("FINISHED", 0.5));
  EXPECT_LT(end_time.seconds(), 2.5);
  EXPECT_EQ(left, 203);  // with parameters, tags and the end
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("203 rows for MLflow"));
  EXPECT_THAT(said, HasSubstr("`sluice mlflow " + folder_.path()));
  // Later, with the server back:
  fake_.set_trouble(nullptr);
  EXPECT_EQ(base::value_or_throw(send_to_mlflow(folder_.path(), "", 20)), 0);
  expect_steps(1, 200);
  EXPECT_THAT(fake_.statuses, ElementsAre("FINISHED"));
}

TEST_F(Mlflow, AResumedRunGoesOnAndLosesNoRow) {
  const cloud::test::Server server(std::ref(fake_));
  auto first = start(server, {}, {{"lr", 0.1}, {"epochs", 1.0}});
  rows(*first, 1, 10);
  while (base::value_or_throw(base::read_file(folder_.path("mlflow.json"))).find("\"sent\": 12") ==
         std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  fake_.set_trouble([](const Request&) { return Reply{.status = 503}; });
  rows(*first, 11, 20);
  testing::internal::CaptureStderr();
  EXPECT_EQ(base::value_or_throw(first->end("", 0.1)), 10);  // as if it were killed
  // A row that was not written to its end.
  const std::string lines = read("mlflow.jsonl");
  base::value_or_throw(
      base::write_file_atomically(folder_.path("mlflow.jsonl"), lines + "{\"n\": 99, \"metr"));
  fake_.set_trouble(nullptr);
  // The checkpoint is of step 15: 16 to 20 come again.
  auto second = start(server, 15, {{"lr", 0.1}, {"epochs", 2.0}, {"seed", 1.0}});
  rows(*second, 16, 30);
  EXPECT_EQ(base::value_or_throw(second->end("FINISHED", 20)), 0);
  testing::internal::GetCapturedStderr();
  expect_steps(1, 30);
  EXPECT_EQ(max_times(), 1);
  EXPECT_EQ(fake_.runs.size(), 1u);
  EXPECT_EQ(fake_.parameters["epochs"], "1");
  EXPECT_EQ(fake_.tags["resumed.epochs"], "2");
  EXPECT_EQ(fake_.parameters["seed"], "1");
  EXPECT_THAT(fake_.statuses, ElementsAre("RUNNING", "FINISHED"));
}

// Files of a run that came from elsewhere: a line that is none of Sluice's is passed over, and ends nothing.
TEST_F(Mlflow, LinesThatSomethingElseWroteArePassedOver) {
  const cloud::test::Server server(std::ref(fake_));
  auto first = start(server, {}, {});
  rows(*first, 1, 2);
  EXPECT_EQ(base::value_or_throw(first->end("", 20)), 0);
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  std::string lines;
  int64_t number = 100;
  for (const std::string& rest :
       {std::string(R"("metrics": {"loss": 1})"), std::string(R"("metrics": [1], "step": 3, "time": 4)"),
        std::string(R"("metrics": {"loss": {}}, "step": 3, "time": 4)"),
        std::string(R"("status": 3, "time": 4)"), std::string(R"("status": "FINISHED", "time": "x")"),
        std::string(R"("params": {"a": 1})"), std::string(R"("tags": 7)"), "\"tags\": " + deep})
    lines += base::str("{\"n\": ", number++, ", ", rest, "}\n");
  lines += "{\"n\": -5, \"tags\": {}}\n{\"n\": 18446744073709551615, \"tags\": {}}\n";
  base::value_or_throw(base::write_file_atomically(folder_.path("mlflow.jsonl"), lines));
  EXPECT_EQ(MlflowSpool::left_in(folder_.path()), 0);
  auto second = start(server, 2, {});
  rows(*second, 3, 4);
  EXPECT_EQ(base::value_or_throw(second->end("FINISHED", 20)), 0);
  expect_steps(1, 4);
}

TEST_F(Mlflow, AFreshRunIsARunOfItsOwn) {
  const cloud::test::Server server(std::ref(fake_));
  start(server)->end("FINISHED", 20).value();
  auto second = start(server);
  rows(*second, 1, 3);
  EXPECT_EQ(base::value_or_throw(second->end("FINISHED", 20)), 0);
  EXPECT_EQ(fake_.runs.size(), 2u);
  expect_steps(1, 3);
}

TEST_F(Mlflow, WhoIsNotLetInIsToldOnceAndTrainsOn) {
  fake_.trouble = [](const Request&) {
    return Reply{.status = 403, .body = R"({"error_code": "PERMISSION_DENIED", "message": "no entry"})"};
  };
  const cloud::test::Server server(std::ref(fake_));
  testing::internal::CaptureStderr();
  auto run = start(server);
  while (server.requests() < 4) {
    rows(*run, 1, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const base::Stopwatch time;
  EXPECT_GT(base::value_or_throw(run->end("FAILED", 20)), 0);
  EXPECT_LT(time.seconds(), 5);  // no waiting for what will not come
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("no entry"));
  EXPECT_THAT(said, HasSubstr("MLFLOW_TRACKING_TOKEN"));
  EXPECT_EQ(said.find("no entry"), said.rfind("no entry")) << said;
}

// One outage shows itself in many ways. The first is told, and the end says what is left.
TEST_F(Mlflow, AnOutageIsToldOnceWhateverItLooksLike) {
  fake_.trouble = [turn = 0](const Request&) mutable -> std::optional<Reply> {
    switch (turn++ % 4) {
      case 0:
        return Reply{.cut_after = 0};
      case 1:
        return Reply{.status = 503, .body = "starting"};
      case 2:
        return Reply{.status = 429, .body = "later"};
      default:
        return Reply{.status = 500, .body = "broken"};
    }
  };
  const cloud::test::Server server(std::ref(fake_));
  testing::internal::CaptureStderr();
  auto run = start(server);
  rows(*run, 1, 3);
  while (server.requests() < 10) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GT(base::value_or_throw(run->end("FINISHED", 0.1)), 0);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr(" W MLflow: "));
  EXPECT_EQ(said.find(" W MLflow: "), said.rfind(" W MLflow: ")) << said;
  // The request is named once, too.
  EXPECT_EQ(said.find("/experiments/get-by-name"), said.rfind("/experiments/get-by-name")) << said;
  EXPECT_THAT(said, HasSubstr("rows for MLflow at " + server.address()));
}

TEST_F(Mlflow, ARowThatIsRefusedDoesNotHoldUpOthers) {
  const cloud::test::Server server(std::ref(fake_));
  testing::internal::CaptureStderr();
  auto run = start(server);
  rows(*run, 1, 20);
  base::value_or_throw(run->metrics({{"train/bad", 1}}, 21, 1));
  rows(*run, 21, 40);
  EXPECT_EQ(base::value_or_throw(run->end("FINISHED", 20)), 0);
  const std::string said = testing::internal::GetCapturedStderr();
  expect_steps(1, 40);
  EXPECT_THAT(said, HasSubstr("train/bad is bad"));
  EXPECT_THAT(read("mlflow-refused.jsonl"), HasSubstr("train/bad"));
}

// Each would replace the files that the other one is writing.
TEST_F(Mlflow, AFolderIsSentByOneAtATime) {
  const cloud::test::Server server(std::ref(fake_));
  auto run = start(server);
  rows(*run, 1, 5);
  const auto sent = send_to_mlflow(folder_.path(), "", 1);
  ASSERT_FALSE(sent);
  EXPECT_THAT(sent.error().what(), HasSubstr("a training that runs in it"));
  rows(*run, 6, 10);
  EXPECT_EQ(base::value_or_throw(run->end("FINISHED", 20)), 0);
  expect_steps(1, 10);
  EXPECT_EQ(base::value_or_throw(send_to_mlflow(folder_.path(), "", 1)), 0);
}

TEST_F(Mlflow, AFolderWithoutARunSaysSo) {
  const auto sent = send_to_mlflow(folder_.path(), "", 1);
  ASSERT_FALSE(sent);
  EXPECT_THAT(sent.error().what(), HasSubstr("mlflow.json"));
}

}  // namespace
}  // namespace sluice::train
