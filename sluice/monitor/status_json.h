// A record of a process within a larger document.
#pragma once

#include <nlohmann/json.hpp>

#include "sluice/monitor/process_status.h"

namespace sluice::monitor {

// Does the same as parse_status(), for a parsed document. It may be a stranger's: nesting at unexpected
// places, of any depth, does no harm.
base::Result<ProcessStatus> status_of(const nlohmann::json& document);

}  // namespace sluice::monitor
