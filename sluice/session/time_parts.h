// The parts of a stretch of time.
#pragma once

#include "sluice/session/backend.h"

namespace sluice::sessions {

// Seconds of one process. The time without compiling is divided into device, input and trace; each moment
// belongs to one of them: device, a program was on the device; input, none was, and the loop waited for its
// batch; trace, none was, and the host did something else (it recorded, looked a program up, copied, logged).
struct TimeParts {
  double compiling = 0;
  double input = 0, trace = 0, device = 0;

  double seconds() const { return input + trace + device; }
};

// The parts of a stretch of `wall` seconds. `starving`: seconds spent waiting for a batch, with no program on
// the device.
TimeParts time_parts(double wall, const DeviceTimes& begin, const DeviceTimes& end, double starving);
// The parts for a device without programs, where an operation ends when its call returns: all time without
// waiting counts as the device's.
TimeParts eager_time_parts(double wall, double starving);

}  // namespace sluice::sessions
