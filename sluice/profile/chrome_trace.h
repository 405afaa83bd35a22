// Spans as JSON of Chrome's trace format, for Perfetto (https://ui.perfetto.dev).
#pragma once

#include <string>

#include "sluice/base/span.h"

namespace sluice::profile {

// Times are microseconds since the day began (UTC): the files of several processes lie on one axis, and a
// reader's double still tells nanoseconds apart.
std::string chrome_trace_of(const base::SpanRecording& recording, const std::string& host, int process);

}  // namespace sluice::profile
