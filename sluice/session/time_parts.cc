#include "sluice/session/time_parts.h"

#include <algorithm>

namespace sluice::sessions {

TimeParts time_parts(double wall, const DeviceTimes& begin, const DeviceTimes& end, double starving) {
  TimeParts times;
  times.compiling = end.compiling - begin.compiling;
  const double idle_compiling = end.compiling_idle - begin.compiling_idle;
  const double rest = std::max(0.0, wall - times.compiling);
  // The programs that ran while the host compiled are not part of the rest.
  times.device = std::clamp(end.busy - begin.busy - (times.compiling - idle_compiling), 0.0, rest);
  times.input = std::clamp(starving, 0.0, rest - times.device);
  times.trace = rest - times.device - times.input;
  return times;
}

TimeParts eager_time_parts(double wall, double starving) {
  TimeParts times;
  times.input = std::clamp(starving, 0.0, wall);
  times.device = wall - times.input;
  return times;
}

}  // namespace sluice::sessions
