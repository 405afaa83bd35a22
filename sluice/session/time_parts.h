// Where a stretch of time went.
#pragma once

#include "sluice/session/backend.h"

namespace sluice::sessions {

// Seconds of one process. What is left after compiling is device, input and trace, of which each moment has
// one: a program was on the device; or none was, and the loop waited for its batch; or none was, and the host
// did something else (it recorded, looked a program up, copied, logged).
struct TimeParts {
  double compiling = 0;
  double input = 0, trace = 0, device = 0;

  double seconds() const { return input + trace + device; }
};

// Of a stretch that took `wall` seconds. `starving`: for a batch, with no program on the device.
TimeParts time_parts(double wall, const DeviceTimes& begin, const DeviceTimes& end, double starving);
// The same for a device without programs, where an operation is over when its call returns: all that is not
// waiting is the device's.
TimeParts eager_time_parts(double wall, double starving);

}  // namespace sluice::sessions
