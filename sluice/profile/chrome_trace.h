// Spans as JSON of Chrome's trace format, for Perfetto (https://ui.perfetto.dev).
#pragma once

#include <string>

#include "sluice/base/span.h"

namespace sluice::profile {

// Times are microseconds since 1970, with their fractions, so that the files of several processes lie on one
// axis.
std::string chrome_trace_of(const base::SpanRecording& recording, const std::string& host, int process);

}  // namespace sluice::profile
