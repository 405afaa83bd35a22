// Checks what a machine needs of Google's cloud: its clock, the metadata server, credentials, buckets.
#pragma once

#include <string>
#include <vector>

#include "sluice/monitor/doctor/finding.h"

namespace sluice::monitor {

// Asks the metadata server if there is one, then (with buckets) Cloud Storage, with the credentials that a
// training would use. Waits some seconds for each answer.
void check_cloud(const std::vector<std::string>& buckets, const Report& report);

// Returns the finding for a clock that is `ahead` seconds ahead of the date in an answer.
Finding clock_finding(double ahead, const std::string& of);

}  // namespace sluice::monitor
