#include "sluice/google/projects.h"

#include <algorithm>

#include "sluice/base/text/join.h"

namespace sluice::google {

Outcome<std::vector<std::string>> Projects::disabled(const std::vector<std::string>& services) {
  Call call{.service = Service::kServiceUsage,
            .path = base::str("/v1/projects/", project_, "/services:batchGet"),
            .what = base::str("the services that ", project_, " has enabled")};
  for (const std::string& service : services)
    call.query.emplace_back("names", base::str("projects/", project_, "/services/", service));
  GOOGLE_TRY(const Json answer, api_.call(call));
  std::vector<std::string> enabled, missing;
  for (const Json& service : elements(answer, "services"))
    if (text(service, "state") == "ENABLED") enabled.push_back(last_piece(text(service, "name")));
  for (const std::string& service : services)
    if (std::find(enabled.begin(), enabled.end(), service) == enabled.end()) missing.push_back(service);
  return missing;
}

std::string Projects::enable_command(const std::vector<std::string>& services) const {
  return base::str("gcloud services enable ", base::join(services, " "), " --project=", project_);
}

Outcome<std::vector<Quota>> Projects::quota_limits(const std::string& service) {
  const Call call{
      .service = Service::kServiceUsage,
      .path = base::str("/v1beta1/projects/", project_, "/services/", service, "/consumerQuotaMetrics"),
      .query = {{"view", "FULL"}},
      .what = base::str("the quotas of ", service)};
  GOOGLE_TRY(const Json metrics, api_.pages(call, "metrics", nullptr));
  std::vector<Quota> quotas;
  for (const Json& metric : metrics) {
    for (const Json& limit : elements(metric, "consumerQuotaLimits")) {
      for (const Json& bucket : elements(limit, "quotaBuckets")) {
        const std::string region = text(bucket, "dimensions.region"), zone = text(bucket, "dimensions.zone");
        const double limit_there = number(bucket, "effectiveLimit");
        // Limits on requests have no place, and -1 means no limit.
        if ((region.empty() && zone.empty()) || limit_there < 0) continue;
        quotas.push_back(
            {last_piece(text(limit, "name")), limit_there, -1, zone.empty() ? region : zone, zone.empty()});
        const std::string name = last_piece(text(metric, "metric"));
        if (!name.empty()) quotas.back().name = name;
      }
    }
  }
  return quotas;
}

Outcome<std::vector<std::string>> Projects::missing_permissions(const std::vector<std::string>& permissions) {
  const Call call{.service = Service::kResourceManager,
                  .method = "POST",
                  .path = base::str("/v3/projects/", project_, ":testIamPermissions"),
                  .body = {{"permissions", permissions}},
                  .what = base::str("the caller's permissions in ", project_),
                  .reads = true};
  GOOGLE_TRY(const Json answer, api_.call(call));
  const auto granted = items(answer, "permissions");
  std::vector<std::string> missing;
  for (const std::string& permission : permissions)
    if (std::find(granted.begin(), granted.end(), permission) == granted.end()) missing.push_back(permission);
  return missing;
}

}  // namespace sluice::google
