// What a thread has worked, waits left out.
#pragma once

#include <ctime>

namespace sluice::bench {

// Of this thread, so far.
inline double thread_microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

}  // namespace sluice::bench
