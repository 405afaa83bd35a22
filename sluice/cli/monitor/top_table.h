// What `sluice top` shows, as lines of text.
#pragma once

#include <string>
#include <vector>

#include "sluice/monitor/host_report.h"

namespace sluice::cli {

// A table of the training processes, one of the chips, and what is to be said besides: "no TPU program is
// running", hosts that do not answer. Lines that begin with kHeading are headings. Nothing in them moves a
// terminal's cursor.
inline constexpr char kHeading = '\1';
std::vector<std::string> top_lines(const std::vector<monitor::HostReport>& reports);

}  // namespace sluice::cli
