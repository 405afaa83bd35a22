// The memory of this process, for tests and benches.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace sluice::base {

// Returns a number of this process from one of Linux's files in /proc/self, such as kilobytes ("VmHWM:") of
// "status" or bytes ("rchar:") of "io"; 0 without one.
inline int64_t process_number(const std::string& file, const std::string& name) {
  std::ifstream in("/proc/self/" + file);
  for (std::string word; in >> word;)
    if (int64_t number = 0; word == name && in >> number) return number;
  return 0;
}

// Forgets what peak_memory() has seen.
inline void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << 5; }

// Returns the process's largest resident memory since its start, or since the last reset_peak_memory(), in
// bytes.
inline int64_t peak_memory() { return process_number("status", "VmHWM:") << 10; }

}  // namespace sluice::base
