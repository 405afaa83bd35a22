// The conversion of a window of steps to the rates that are reported.
#pragma once

#include <optional>

#include "sluice/estimate/peak.h"
#include "sluice/pjrt/device.h"
#include "sluice/session/rates/step_log.h"
#include "sluice/session/rates/step_rates.h"

namespace sluice::sessions {

// `processes`: the number of processes that do the same steps with equally many rows. `peak`: of one replica.
StepRates rates_of(const StepWindow& window, int processes, const std::optional<estimate::Peak>& peak,
                   const std::optional<pjrt::MemoryStats>& memory);

}  // namespace sluice::sessions
