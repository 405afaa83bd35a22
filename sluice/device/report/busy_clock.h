// How long programs were on the devices: the union of their times, each from the call that launches it to the
// event that says it is over.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>

#include "sluice/pjrt/event.h"

namespace sluice::device {

// Threads: any; the plugin's call in.
class BusyClock {
 public:
  // The process's clock. Never destroyed: events may still come while the process ends.
  static BusyClock& get();

  // A program is about to be launched; each begin() needs an end(), which takes what begin() gave: the
  // moment, on span_clock().
  int64_t begin();
  void end(int64_t began);
  // end() as soon as all of the launch's events are there.
  void end_after(std::span<const pjrt::Event> done, int64_t began);
  // With at least one program begun and not ended, since the process's start or restart().
  double seconds() const;
  void restart();

 private:
  mutable std::mutex mutex_;
  int running_ = 0;
  int64_t since_ = 0, sum_ = 0;  // nanoseconds of span_clock()
  int64_t last_end_ = 0;         // of a program
};

}  // namespace sluice::device
