// What errors of Google's services mean, from texts as the services write them.
#include "sluice/google/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::google {
namespace {

using ::testing::HasSubstr;

Failure answer(int status, const std::string& error) {
  return failure_of_answer(status, R"({"error": )" + error + "}", "creating x", "p", "tpu.googleapis.com");
}

TEST(Failure, OfAnswers) {
  EXPECT_EQ(answer(403, R"({"message": "Location z is not found or access is unauthorized."})").kind,
            Kind::kForbidden);
  const Failure off = answer(403, R"({"message": "x", "details": [{"reason": "SERVICE_DISABLED"}]})");
  EXPECT_EQ(off.kind, Kind::kApiDisabled);
  EXPECT_THAT(off.what(), HasSubstr("gcloud services enable tpu.googleapis.com --project=p"));
  EXPECT_EQ(answer(404, R"({"message": "not found"})").kind, Kind::kNotFound);
  EXPECT_EQ(answer(409, R"({"message": "x", "status": "ALREADY_EXISTS"})").kind, Kind::kExists);
  EXPECT_EQ(answer(409, R"({"message": "busy", "status": "ABORTED"})").kind, Kind::kWrongState);
  EXPECT_EQ(answer(400, R"({"message": "x", "status": "FAILED_PRECONDITION"})").kind, Kind::kWrongState);
  EXPECT_EQ(answer(400, R"({"message": "bad name"})").kind, Kind::kInvalid);
  EXPECT_EQ(answer(401, R"({"message": "expired"})").kind, Kind::kCredentials);
  EXPECT_EQ(answer(503, R"({"message": "later"})").kind, Kind::kPassing);
  EXPECT_EQ(answer(503, "nonsense").kind, Kind::kPassing);
  EXPECT_EQ(answer(429, R"({"message": "There is no more capacity in the zone \"z\"; try"})").kind,
            Kind::kNoCapacity);
}

TEST(Failure, QuotasHaveNameLimitAndPlace) {
  const Failure tpu =
      answer(429, R"({"message": "Quota limit 'TPUV6EPreemptiblePerProjectPerRegionForTPUAPI' has )"
                  R"(been exceeded. Limit: 0 in region us-east1."})");
  ASSERT_EQ(tpu.kind, Kind::kQuota);
  EXPECT_EQ(tpu.quota.name, "TPUV6EPreemptiblePerProjectPerRegionForTPUAPI");
  EXPECT_EQ(tpu.quota.limit, 0);
  EXPECT_EQ(tpu.quota.place, "us-east1");
  EXPECT_TRUE(tpu.quota.regional);
  EXPECT_THAT(tpu.what(), HasSubstr("limit 0 in region us-east1"));
  const Failure zone =
      answer(429, R"({"message": "Quota limit 'N' has been exceeded. Limit: 8 in zone z-a."})");
  EXPECT_FALSE(zone.quota.regional);
  const Failure cpu =
      answer(403, R"({"message": "Quota 'CPUS' exceeded.  Limit: 24.0 in region us-central1."})");
  EXPECT_EQ(cpu.kind, Kind::kQuota);
  EXPECT_EQ(cpu.quota.limit, 24);
  // So many calls a minute pass by themselves.
  EXPECT_EQ(answer(429, R"({"message": "Quota limit 'CreateNode per minute' has been exceeded."})").kind,
            Kind::kPassing);
}

TEST(Failure, OfOperations) {
  const auto kind = [](const char* text) { return failure_of_operation(Json::parse(text), "x").kind; };
  EXPECT_EQ(kind(R"({"code": 8, "message": "There is no more capacity in the zone \"z\""})"),
            Kind::kNoCapacity);
  EXPECT_EQ(kind(R"({"code": 9, "message": "Insufficient reserved capacity"})"), Kind::kNoCapacity);
  EXPECT_EQ(kind(R"({"code": 13, "message": "internal"})"), Kind::kOther);
  EXPECT_EQ(kind(R"({"code": 3, "message": "not supported while in state PREEMPTED"})"), Kind::kWrongState);
  EXPECT_EQ(kind(R"({"errors": [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "message": "m"}]})"),
            Kind::kNoCapacity);
  EXPECT_EQ(kind(R"({"errors": [{"code": "RESOURCE_NOT_READY", "message": "m"}]})"), Kind::kWrongState);
  const Failure quota = failure_of_operation(
      Json::parse(R"({"errors": [{"code": "QUOTA_EXCEEDED", "message": "m", "errorDetails": [{"quotaInfo":
        {"limitName": "CPUS-per-region", "limit": 24, "dimensions": {"region": "r"}}}]}]})"),
      "x");
  EXPECT_EQ(quota.kind, Kind::kQuota);
  EXPECT_EQ(quota.quota.name, "CPUS-per-region");
  EXPECT_EQ(quota.quota.limit, 24);
  EXPECT_EQ(quota.quota.place, "r");
}

TEST(Failure, PassesOnAsAnError) {
  const auto inner = []() -> Outcome<int> { return failed(Kind::kQuota, Code::kResourceExhausted, "full"); };
  const auto whole = [&]() -> Outcome<int> {
    GOOGLE_TRY(const int value, inner());
    return value;
  };
  const auto plain = [&]() -> base::Result<int> {
    SLUICE_TRY(const int value, inner());
    return value;
  };
  EXPECT_EQ(whole().error().kind, Kind::kQuota);
  EXPECT_STREQ(plain().error().what(), "full");
}

TEST(Json, TimesAndPieces) {
  EXPECT_EQ(seconds_of_time("2026-11-25T03:00:00.5Z"), 1795575600.5);
  EXPECT_EQ(seconds_of_time("2026-11-25T04:00:00+01:00"), 1795575600);
  EXPECT_EQ(time_of_seconds(1795575600), "2026-11-25T03:00:00Z");
  EXPECT_EQ(seconds_of_time("never"), 0);
  EXPECT_EQ(last_piece("projects/p/zones/z/disks/d"), "d");
  EXPECT_EQ(piece_after("projects/p/zones/z/disks/d", "zones"), "z");
  const Json json = Json::parse(R"({"a": {"b": "7", "c": "True"}, "l": [1, "x"]})");
  EXPECT_EQ(number(json, "a.b"), 7);
  EXPECT_TRUE(truth(json, "a.c"));
  EXPECT_EQ(text(json, "a.missing.more"), "");
  EXPECT_EQ(items(json, "l"), (std::vector<std::string>{"1", "x"}));
}

}  // namespace
}  // namespace sluice::google
