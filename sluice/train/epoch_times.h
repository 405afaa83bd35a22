// Where the time of an epoch went, and so what to make quicker.
#pragma once

#include <string>

#include "sluice/base/result.h"
#include "sluice/session/backend.h"

namespace sluice::train {

// Seconds of one process. What is left after compiling is device, input and trace, of which each moment has
// one: a program was on the device; or none was, and the loop waited for its batch; or none was, and the host
// did something else (it recorded, looked a program up, copied, logged).
struct EpochTimes {
  double compiling = 0;
  double input = 0, trace = 0, device = 0;

  double seconds() const { return input + trace + device; }
  // "input", "trace" or "device": the largest of the three.
  const char* bound() const;
  // Whole percents of seconds(), which add up to 100.
  int input_percent() const;
  int trace_percent() const;
  int device_percent() const { return 100 - input_percent() - trace_percent(); }
};

// Of an epoch that took `wall` seconds. `starving`: for a batch, with no program on the device.
EpochTimes epoch_times(double wall, const sessions::DeviceTimes& begin, const sessions::DeviceTimes& end,
                       double starving);
// The same for a device without programs, where an operation is over when its call returns: all that is not
// waiting is the device's.
EpochTimes eager_epoch_times(double wall, double starving);

// The epoch of the process whose device had the largest share of time without a program: what holds up this
// one holds up all. `texts` has text_of() of each process; `slowest` gets its index.
std::string text_of(const EpochTimes& times);
base::Result<EpochTimes> least_busy(const std::vector<std::string>& texts, size_t* slowest);

// "Epoch 3 was input-bound: waiting for data 71 %, tracing 4 %, device 25 % of 12.3 s; compiling took 3.1 s
// more."
std::string describe(const EpochTimes& times, int64_t epoch);

}  // namespace sluice::train
