// Where the time of an epoch went, and so what to make quicker.
#pragma once

#include <string>

#include "sluice/base/result.h"
#include "sluice/session/time_parts.h"

namespace sluice::train {

// Of an epoch.
struct EpochTimes : sessions::TimeParts {
  // "input", "trace" or "device": the largest of the three.
  const char* bound() const;
  // Whole percents of seconds(), which add up to 100.
  int input_percent() const;
  int trace_percent() const;
  int device_percent() const { return 100 - input_percent() - trace_percent(); }
};

// The epoch of the process whose device had the largest share of time without a program: what holds up this
// one holds up all. `texts` has text_of() of each process; `slowest` gets its index.
std::string text_of(const EpochTimes& times);
base::Result<EpochTimes> least_busy(const std::vector<std::string>& texts, size_t* slowest);

// "Epoch 3 was input-bound: waiting for data 71 %, tracing 4 %, device 25 % of 12.3 s; compiling took 3.1 s
// more."
std::string describe(const EpochTimes& times, int64_t epoch);

}  // namespace sluice::train
