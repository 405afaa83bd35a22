// The metadata server: facts that a machine in Google's cloud has about itself.
#pragma once

#include <optional>
#include <string>

#include "sluice/base/result.h"
#include "sluice/cloud/http.h"

namespace sluice::cloud {

// Returns whether this machine has one: GCE_METADATA_HOST is set, the firmware says "Google", or the server
// answers within a second. Checked once per process.
bool on_google_cloud(Http& http);
// Returns the URL of a path under /computeMetadata/v1/; requests need the header "Metadata-Flavor: Google".
std::string metadata_address(const std::string& path);
// Returns the value under /computeMetadata/v1/, such as "instance/zone"; tries again if the server is busy.
base::Result<std::string> metadata(Http& http, const std::string& path);
// Tries once; kUnavailable if the server is busy.
base::Result<std::string> metadata_once(Http& http, const std::string& path);
// Returns "us-central2" if the machine is in zone us-central2-b; nothing outside Google's cloud.
std::optional<std::string> own_region(Http& http);

}  // namespace sluice::cloud
