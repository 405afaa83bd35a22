// What a machine sees of Google's cloud: its clock, the metadata server, credentials, buckets.
#pragma once

#include <string>
#include <vector>

#include "sluice/monitor/doctor/finding.h"

namespace sluice::monitor {

// Asks the metadata server where there is one, then (with buckets) Cloud Storage, with the credentials that a
// training would find. Each answer is waited for some seconds.
void check_cloud(const std::vector<std::string>& buckets, const Report& report);

// This machine's clock is so many seconds ahead of the date in an answer.
Finding clock_finding(double ahead, const std::string& of);

}  // namespace sluice::monitor
