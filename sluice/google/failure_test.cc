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

// What the services and their users' reports have, word by word.
TEST(Failure, OfRealWordings) {
  const struct {
    int status;
    const char* message;
    Kind kind;
  } answers[] = {
      {429,
       R"(There is no more capacity in the zone \"us-central1-a\"; you can try in another zone where Cloud TPU Nodes are offered (see https://cloud.google.com/tpu/docs/regions) [EID: 0x1])",
       Kind::kNoCapacity},
      {429, R"(The zone us-west4-b does not currently have sufficient capacity for the requested resources.)",
       Kind::kNoCapacity},
      {429,
       R"(The reservation my-reservation does not have sufficient capacity for the requested resources.)",
       Kind::kNoCapacity},
      {400, R"(Specified reservation 'r' does not have available resources for the request.)",
       Kind::kNoCapacity},
      {503,
       R"(The zone 'projects/p/zones/us-central1-a' does not have enough resources available to fulfill the request.  Try a different zone, or try again later.)",
       Kind::kNoCapacity},
      {503,
       R"(A ct5lp-hightpu-4t VM instance is currently unavailable in the us-west1-c zone. Alternatively, you can try your request again with a different VM hardware configuration or at a later time.)",
       Kind::kNoCapacity},
      {503,
       R"(A n1-standard-4 VM instance with 1 nvidia-tesla-k80 accelerator(s) is currently unavailable in the us-central1-c zone.)",
       Kind::kNoCapacity},
      {429, R"(Insufficient capacity. Please try a different zone or try again later.)", Kind::kNoCapacity},
      {400, R"(Insufficient reserved capacity in the reservation r.)", Kind::kNoCapacity},
      {503, R"(ZONE_RESOURCE_POOL_EXHAUSTED)", Kind::kNoCapacity},
      {503, R"(ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: the zone has no resources)", Kind::kNoCapacity},
      {429, R"(GCE_STOCKOUT: the zone is out of resources)", Kind::kNoCapacity},
      {429, R"(Google Compute Engine: stockout in us-east5-a)", Kind::kNoCapacity},
      {503, R"(The zone us-central2-b is currently out of capacity for v4-32)", Kind::kNoCapacity},
      {503, R"(There are not enough resources available in the zone to fulfil the request)",
       Kind::kNoCapacity},
      {429,
       R"(Quota limit 'TPUV6EPreemptiblePerProjectPerRegionForTPUAPI' has been exceeded. Limit: 0 in region us-east1.)",
       Kind::kQuota},
      {429,
       R"(Quota limit 'TPUV5sLitepodPerProjectPerZoneForTPUAPI' has been exceeded. Limit: 4 in zone us-west4-a.)",
       Kind::kQuota},
      {429, R"(Quota 'TPU_LITE_PODSLICE_V5' exhausted. Limit 20800 in region us-west4)", Kind::kQuota},
      {429,
       R"(Quota 'TPU_LITE_PODSLICE_V5' exhausted. Limit 20800 in region us-west4, and there is capacity)",
       Kind::kQuota},
      {403, R"(Quota 'CPUS' exceeded.  Limit: 24.0 in region us-central1.)", Kind::kQuota},
      {403, R"(Quota 'PREEMPTIBLE_NVIDIA_A100_GPUS' exceeded. Limit: 1.0 in region europe-west4.)",
       Kind::kQuota},
      {403, R"(Quota 'SSD_TOTAL_GB' exceeded.  Limit: 500.0 in region us-east1. Usage: 480.0)", Kind::kQuota},
      {403,
       R"(Insufficient regional quota to satisfy request: resource \"CPUS\": request requires '24.0' and is short '8.0'. project has a quota of '24.0' with '16.0' available.)",
       Kind::kQuota},
      {429,
       R"(Quota exceeded for quota metric 'TPU v5e' and limit 'TPUs per project per zone' of service 'tpu.googleapis.com' for consumer 'project_number:1'.)",
       Kind::kQuota},
      {429, R"(You have reached your quota of TPU cores in this region.)", Kind::kQuota},
      {403, R"(The project does not have enough quota for 8 TPU chips in us-east5.)", Kind::kQuota},
      {400, R"(Exceeded limit 'QUOTA_FOR_INSTANCES' on resource 'x'. Limit: 200)", Kind::kQuota},
      {429, R"(Quota limit 'CreateNode per minute' has been exceeded.)", Kind::kPassing},
      {429,
       R"(Quota exceeded for quota metric 'CreateNode requests' and limit 'CreateNode requests per minute' of service 'tpu.googleapis.com' for consumer 'project_number:1'.)",
       Kind::kPassing},
      {403, R"(Rate Limit Exceeded)", Kind::kPassing},
      {403,
       R"(Quota exceeded for quota group 'ReadGroup' and limit 'Read requests per 100 seconds' of service 'compute.googleapis.com'.)",
       Kind::kPassing},
      {429, R"(Too many requests)", Kind::kPassing},
      {503, R"(The service is currently unavailable.)", Kind::kPassing},
      {500, R"(Internal error encountered.)", Kind::kPassing},
      {403, R"(Location us-central2-b is not found or access is unauthorized.)", Kind::kForbidden},
      {403,
       R"(Permission 'tpu.nodes.create' denied on resource '//tpu.googleapis.com/projects/p/locations/z' (or it may not exist).)",
       Kind::kForbidden},
      {403, R"(Required 'compute.instances.create' permission for 'projects/p/zones/z/instances/x')",
       Kind::kForbidden},
      {403, R"(The caller does not have permission)", Kind::kForbidden},
      {403, R"(Project p is not permitted to use reservation r.)", Kind::kForbidden},
      {403, R"(This API method requires billing to be enabled. Please enable billing on project #1)",
       Kind::kForbidden},
      {403,
       R"(Cloud TPU API has not been used in project 1 before or it is disabled. Enable it by visiting https://console.developers.google.com/)",
       Kind::kApiDisabled},
      {404, R"(The resource 'projects/p/zones/z/reservations/r' was not found)", Kind::kNotFound},
      {400, R"(Invalid value for field 'acceleratorType': 'v9-8'.)", Kind::kInvalid},
      {401, R"(Request had invalid authentication credentials.)", Kind::kCredentials},
  };
  for (const auto& [status, message, kind] : answers)
    EXPECT_EQ(answer(status, base::str(R"({"message": ")", message, R"("})")).kind, kind) << message;
  const struct {
    const char* error;
    Kind kind;
  } operations[] = {
      {R"({"code": 8, "message": "There is no more capacity in the zone \"z\""})", Kind::kNoCapacity},
      {R"({"code": 8, "message": "resources are gone"})", Kind::kNoCapacity},
      {R"({"code": 9, "message": "The reservation r does not have sufficient capacity for the requested resources."})",
       Kind::kNoCapacity},
      {R"({"code": 9, "message": "Network default has no subnetwork in us-east1"})", Kind::kWrongState},
      {R"({"code": 8, "message": "Quota 'X' exhausted. Limit 20800 in region us-west4"})", Kind::kQuota},
      {R"({"code": 8, "message": "Quota limit 'CreateNodePerMinutePerProject' has been exceeded, per minute"})",
       Kind::kPassing},
      {R"({"code": 7, "message": "The caller does not have permission"})", Kind::kForbidden},
      {R"({"errors": [{"code": "VM_MIN_COUNT_NOT_REACHED", "message": "Requested minimum count of 4 VMs could not be created."}]})",
       Kind::kNoCapacity},
      {R"({"errors": [{"code": "CONDITION_NOT_MET", "message": "m"}, {"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "m"}]})",
       Kind::kNoCapacity},
      {R"({"errors": [{"code": "QUOTA_EXCEEDED", "message": "Quota 'TPUS' exceeded. Limit: 4.0 in region r."}]})",
       Kind::kQuota},
      {R"({"errors": [{"code": "PERMISSIONS_ERROR", "message": "Required 'compute.instances.create' permission"}]})",
       Kind::kForbidden},
  };
  for (const auto& [error, kind] : operations)
    EXPECT_EQ(failure_of_operation(Json::parse(error), "x").kind, kind) << error;
  const Failure exhausted =
      answer(429, R"({"message": "Quota 'X' exhausted. Limit 20800 in region us-west4"})");
  EXPECT_EQ(exhausted.quota.name, "X");
  EXPECT_EQ(exhausted.quota.limit, 20800);
  EXPECT_EQ(exhausted.quota.place, "us-west4");
  EXPECT_TRUE(exhausted.quota.regional);
  const Failure regional = answer(
      403, R"({"message": "Insufficient regional quota to satisfy request: resource \"CPUS\": request )"
           R"(requires '24.0' and is short '8.0'. project has a quota of '24.0' with '16.0' available."})");
  EXPECT_EQ(regional.quota.name, "CPUS");
  EXPECT_EQ(regional.quota.limit, 24);
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
