// Writes spans as JSON in Chrome's trace format, for Perfetto (https://ui.perfetto.dev).
#pragma once

#include <string>

#include "sluice/base/span.h"

namespace sluice::profile {

// Times are microseconds since the day began (UTC). So the files of several processes share one axis, and a
// double still has the precision of nanoseconds.
std::string chrome_trace_of(const base::SpanRecording& recording, const std::string& host, int process);

}  // namespace sluice::profile
