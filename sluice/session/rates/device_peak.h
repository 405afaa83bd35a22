// What the devices of this process can do at most.
#pragma once

#include <optional>

#include "sluice/estimate/peak.h"

namespace sluice::sessions {

// Of one local replica of the device "xla", which is open. Of a CPU it is measured, and the best so far is
// kept beside the compiled programs. Nothing where it is not known. Nothing of this process should run
// meanwhile.
std::optional<estimate::Peak> replica_peak();

}  // namespace sluice::sessions
