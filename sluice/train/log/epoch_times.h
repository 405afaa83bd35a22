// The parts of an epoch's time, which show what to speed up.
#pragma once

#include <string>

#include "sluice/base/result.h"
#include "sluice/session/time_parts.h"

namespace sluice::train {

// The times of one epoch.
struct EpochTimes : sessions::TimeParts {
  // The name of the largest part: "input", "trace" or "device".
  const char* bound() const;
  // Whole percents of seconds(), which add up to 100.
  int input_percent() const;
  int trace_percent() const;
  int device_percent() const { return 100 - input_percent() - trace_percent(); }
};

// text_of() writes an epoch's times for other processes. least_busy() takes the texts of all processes and
// returns the epoch of the process whose device was idle for the largest share: what delays this process
// delays all. `slowest` gets its index.
std::string text_of(const EpochTimes& times);
base::Result<EpochTimes> least_busy(const std::vector<std::string>& texts, size_t* slowest);

// Returns "Epoch 3 was input-bound: waiting for data 71 %, tracing 4 %, device 25 % of 12.3 s; compiling took
// 3.1 s more."
std::string describe(const EpochTimes& times, int64_t epoch);

}  // namespace sluice::train
