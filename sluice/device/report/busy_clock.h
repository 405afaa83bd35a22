// Measures how long programs were on the devices: the union of their times, each from the call that launches
// it to the event of its end.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>

#include "sluice/pjrt/event.h"

namespace sluice::device {

// Any thread; the plugin's threads call it too.
class BusyClock {
 public:
  // Returns the process's clock. It is never destroyed: events may still come while the process ends.
  static BusyClock& get();

  // Notes that a program is about to be launched. Each begin() needs an end(), which takes the value that
  // begin() returned: the time on span_clock().
  int64_t begin();
  void end(int64_t began);
  // Calls end() as soon as all of the launch's events have arrived.
  void end_after(std::span<const pjrt::Event> done, int64_t began);
  // Returns the time with at least one program begun and not ended, since the process's start or restart().
  double seconds() const;
  void restart();

 private:
  mutable std::mutex mutex_;
  int running_ = 0;
  int64_t since_ = 0, sum_ = 0;  // nanoseconds of span_clock()
  int64_t last_end_ = 0;         // the latest end of a program
};

}  // namespace sluice::device
