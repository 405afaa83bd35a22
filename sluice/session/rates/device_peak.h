// The peak performance of this process's devices.
#pragma once

#include <optional>

#include "sluice/estimate/peak.h"
#include "sluice/profile/layers.h"

namespace sluice::sessions {

// The peak of one local replica of the device "xla", which must be open; empty if it is not known. For a CPU
// it is measured once per machine and stored next to the compiled programs; run nothing else meanwhile.
std::optional<estimate::Peak> replica_peak();

// The peak of this machine's processor on the threads that one kernel call has; measured and stored likewise.
// FLOP/s are 0 if there is no fast kernel; both values are 0 if the device is not a CPU.
profile::Peaks call_peaks();

}  // namespace sluice::sessions
