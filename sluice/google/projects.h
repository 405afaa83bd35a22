// A project: its enabled services, and the caller's permissions in it.
#pragma once

#include <string>
#include <vector>

#include "sluice/google/api.h"

namespace sluice::google {

// Threads: all members from any thread.
class Projects {
 public:
  Projects(Api& api, std::string project) : api_(api), project_(std::move(project)) {}

  // Returns the services among these ("tpu.googleapis.com") that are not enabled.
  Outcome<std::vector<std::string>> disabled(const std::vector<std::string>& services);
  // Returns "gcloud services enable A B --project=P".
  std::string enable_command(const std::vector<std::string>& services) const;
  // Returns the limits of a service by region and zone, including limits of 0; the usage is unknown.
  Outcome<std::vector<Quota>> quota_limits(const std::string& service);
  // Returns the permissions among these ("tpu.nodes.create") that the caller does not have.
  Outcome<std::vector<std::string>> missing_permissions(const std::vector<std::string>& permissions);

 private:
  Api& api_;
  const std::string project_;
};

}  // namespace sluice::google
