// The metadata server: what a machine in Google's cloud knows about itself.
#pragma once

#include <optional>
#include <string>

#include "sluice/base/result.h"
#include "sluice/cloud/http.h"

namespace sluice::cloud {

// Whether this machine has one: GCE_METADATA_HOST is set, the firmware says "Google", or it answers within a
// second. Asked once a process.
bool on_google_cloud(Http& http);
// Where it is asked for what is at this path under /computeMetadata/v1/, with the header "Metadata-Flavor:
// Google".
std::string metadata_address(const std::string& path);
// The value under /computeMetadata/v1/, such as "instance/zone"; asked again when the server is busy.
base::Result<std::string> metadata(Http& http, const std::string& path);
// One try; kUnavailable when the server is busy.
base::Result<std::string> metadata_once(Http& http, const std::string& path);
// "us-central2" where the machine is in zone us-central2-b; nothing outside Google's cloud.
std::optional<std::string> own_region(Http& http);

}  // namespace sluice::cloud
