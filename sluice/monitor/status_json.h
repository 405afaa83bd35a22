// A record of a process within a larger document.
#pragma once

#include <nlohmann/json.hpp>

#include "sluice/monitor/process_status.h"

namespace sluice::monitor {

// As parse_status(), of a document that is parsed already. It may be a stranger's: how deep it goes on where
// nothing is expected does not matter.
base::Result<ProcessStatus> status_of(const nlohmann::json& document);

}  // namespace sluice::monitor
