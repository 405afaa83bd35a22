// Reports a slow compilation while it runs.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

#include "sluice/device/report/frames.h"

namespace sluice::device {

// Watches a compilation while it lives. After SLUICE_SLOW_COMPILE seconds (10; 0: never), and each time that
// time has doubled, prints a line with the program's name, its size, and what launches it.
class SlowCompile {
 public:
  SlowCompile(std::string what, size_t operations);
  ~SlowCompile();
  SlowCompile(const SlowCompile&) = delete;
  SlowCompile& operator=(const SlowCompile&) = delete;

 private:
  void watch(double seconds);

  std::string what_;
  size_t operations_;
  Frames frames_;
  double start_;
  bool told_ = false;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace sluice::device
