// What the devices of this process can do at most.
#pragma once

#include <optional>

#include "sluice/estimate/peak.h"
#include "sluice/profile/layers.h"

namespace sluice::sessions {

// Of one local replica of the device "xla", which is open. Of a CPU it is measured, once a machine: it is
// kept beside the compiled programs. Nothing where it is not known. Nothing should run meanwhile.
std::optional<estimate::Peak> replica_peak();

// Of this machine's processor, on as many threads as one call of a kernel has; measured and kept alike.
// FLOP/s are 0 where there is no fast kernel; both are 0 where the device is no CPU.
profile::Peaks call_peaks();

}  // namespace sluice::sessions
