// The lines of text that `sluice top` shows.
#pragma once

#include <string>
#include <vector>

#include "sluice/monitor/host_report.h"

namespace sluice::cli {

// Returns a table of the training processes, a table of the chips, and remarks: "no TPU program is running",
// and hosts that do not answer. Headings begin with kHeading. The lines cannot move a terminal's cursor.
inline constexpr char kHeading = '\1';
std::vector<std::string> top_lines(const std::vector<monitor::HostReport>& reports);

}  // namespace sluice::cli
