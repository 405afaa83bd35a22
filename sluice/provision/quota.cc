#include "sluice/provision/quota.h"

#include "sluice/base/text/join.h"
#include "sluice/google/projects.h"
#include "sluice/provision/ownership.h"

namespace sluice::provision {
namespace {

bool is_there(const google::Quota& quota, const std::string& zone) {
  return quota.place == (quota.regional ? google::region_of_zone(zone) : zone);
}

// Counts the cores or chips of the generations that `counts` accepts, in the quota's place.
double used_in(const std::vector<Slice>& slices, const google::Quota& quota,
               const std::function<bool(const estimate::TpuGeneration&, bool spot)>& counts) {
  double used = 0;
  for (const Slice& slice : slices) {
    const auto type = estimate::find_tpu_slice(slice.type);
    if (type && is_there(quota, slice.zone) && counts(*type->generation, slice.capacity == Capacity::kSpot))
      used += quota_count(*type, slice.slices);
  }
  return used;
}

}  // namespace

bool quota_is_for(const std::string& name, const estimate::TpuGeneration& generation, bool spot) {
  std::string plain;
  for (const char c : label_value(name))
    if (c != '-' && c != '_') plain += c;
  const auto has = [&](const std::string& word) { return plain.find(word) != std::string::npos; };
  const bool of_generation =
      generation.name == "v5e" ? has("v5slitepod") || has("v5litepod") || has("v5e") : has(generation.name);
  return of_generation && has("preemptible") == spot;
}

google::Outcome<std::vector<google::Quota>> tpu_quotas(Cloud& cloud, const std::vector<Slice>& slices) {
  google::Projects projects(*cloud.api, cloud.project);
  GOOGLE_TRY(std::vector<google::Quota> quotas, projects.quota_limits("tpu.googleapis.com"));
  for (google::Quota& quota : quotas)
    quota.used = used_in(slices, quota, [&](const estimate::TpuGeneration& generation, bool spot) {
      return quota_is_for(quota.name, generation, spot);
    });
  return quotas;
}

google::Failure with_use(Cloud& cloud, const google::Failure& failure, const estimate::TpuSlice& type,
                         Capacity capacity) {
  if (failure.kind != google::Kind::kQuota || failure.quota.used >= 0 || failure.quota.place.empty())
    return failure;
  const auto slices = list_tpu_slices(cloud, "-", nullptr);
  if (!slices) return failure;
  google::Quota quota = failure.quota;
  quota.used = used_in(*slices, quota, [&](const estimate::TpuGeneration& generation, bool spot) {
    return generation.name == type.generation->name && spot == (capacity == Capacity::kSpot);
  });
  google::Failure whole(failure.kind, failure.code(),
                        base::str(failure.what(), ". Used there now: ", quota.used, ", wanted ",
                                  quota_count(type, 1), " more for each slice"));
  whole.quota = quota;
  return whole;
}

double quota_count(const estimate::TpuSlice& type, int slices) {
  return slices * (type.generation->counts_cores ? 2 * type.chips : type.chips);
}

std::optional<google::Quota> lacking_quota(const std::vector<google::Quota>& quotas,
                                           const estimate::TpuSlice& type, Capacity capacity, int slices,
                                           const std::string& zone) {
  if (capacity != Capacity::kOnDemand && capacity != Capacity::kSpot) return std::nullopt;
  const auto room = [](const google::Quota& quota) { return quota.limit - quota.used; };
  std::optional<google::Quota> widest;
  for (const google::Quota& quota : quotas)
    if (is_there(quota, zone) && quota_is_for(quota.name, *type.generation, capacity == Capacity::kSpot) &&
        (!widest || room(quota) > room(*widest)))
      widest = quota;
  if (widest && room(*widest) < quota_count(type, slices)) return widest;
  return std::nullopt;
}

}  // namespace sluice::provision
