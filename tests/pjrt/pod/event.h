// What finishes later: a launch, a transfer.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "tests/pjrt/pod/wire.h"

namespace emulated_pod {

// Set once. Threads: any.
class Event {
 public:
  // Wakes who waits and runs the callbacks, in this thread.
  void set(Status status);
  bool ready() const;
  // Waits.
  Status await() const;
  // Runs the callback once the event is set: now, if it is.
  void on_ready(std::function<void(const Status&)> callback);

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool ready_ = false;
  Status status_;
  std::vector<std::function<void(const Status&)>> callbacks_;
};

}  // namespace emulated_pod
