// Clocks and durations.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/base/result.h"

namespace sluice::base {

// Seconds on a clock that never goes back; only differences mean something.
double monotonic_seconds();
// Seconds since 1970 (UTC).
double wall_seconds();

// "14:03:59" in the local time zone, for a wall_seconds() value.
std::string local_time(double wall);
inline std::string local_time() { return local_time(wall_seconds()); }
// Formats a wall_seconds() value in UTC as strftime(3) does with `format`; the fraction is left out.
std::string utc_time(double wall, const char* format);

// Prints a duration as Python's str(timedelta) does: "0:01:05", "1 day, 2:03:04", "0:00:00.250000". Rounded
// to microseconds; the fraction is left out when it is zero.
std::string duration_text(double seconds);
// Prints a duration in whole seconds (rounded down): "0:01:05".
std::string duration_text_whole(double seconds);

// Returns the seconds of "2h30m", "90m", "1d" or "3600" (seconds). kInvalidArgument for anything else and for
// values of 0 and below; the message begins with `flag`.
Result<double> parse_span(const std::string& text, const std::string& flag);

// Measures the time since its construction or its last restart, in seconds.
class Stopwatch {
 public:
  Stopwatch() : start_(monotonic_seconds()) {}
  double seconds() const { return monotonic_seconds() - start_; }
  // Returns the seconds so far and starts again from zero.
  double restart();

 private:
  double start_;
};

}  // namespace sluice::base
