// A project: which services it has enabled, and what the caller may do in it.
#pragma once

#include <string>
#include <vector>

#include "sluice/google/api.h"

namespace sluice::google {

// Threads: all members from any thread.
class Projects {
 public:
  Projects(Api& api, std::string project) : api_(api), project_(std::move(project)) {}

  // Of these ("tpu.googleapis.com"), the ones that are not enabled.
  Outcome<std::vector<std::string>> disabled(const std::vector<std::string>& services);
  // "gcloud services enable A B --project=P".
  std::string enable_command(const std::vector<std::string>& services) const;
  // The limits of a service by region and zone, also those of 0; what is used is not said.
  Outcome<std::vector<Quota>> quota_limits(const std::string& service);
  // Of these ("tpu.nodes.create"), the ones that the caller does not have.
  Outcome<std::vector<std::string>> missing_permissions(const std::vector<std::string>& permissions);

 private:
  Api& api_;
  const std::string project_;
};

}  // namespace sluice::google
