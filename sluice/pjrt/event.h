// The end of asynchronous work.
#pragma once

#include <functional>
#include <memory>

#include "sluice/base/result.h"

namespace sluice::pjrt {

class Api;
namespace c {
struct PJRT_Event;
}

// Move-only. An empty event is ready and good. Errors carry the plugin's code and text. Threads: any, one at
// a time; dropping an event does not cancel the work.
class Event {
 public:
  Event() = default;
  // Takes the plugin's event; null gives an empty one.
  Event(const Api& api, c::PJRT_Event* event);
  Event(Event&&) noexcept = default;
  Event& operator=(Event&&) noexcept = default;

  // Blocks until the work is over, or the wait is (see end_waits); again and again if need be.
  base::Status await() const;
  bool ready() const;
  // Calls once when the work is over: on one of the plugin's threads, or here when it is over already. It
  // must not block, nor drop the last reference to a client.
  void on_ready(std::function<void(base::Status)> callback) const;
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  struct Handle;
  struct Callback;
  std::shared_ptr<Handle> handle_;  // shared with callbacks that are still to come
};

// Where a device's work needs other processes it may never be over: one of them may be lost. `look` is then
// asked now and then by each wait on an event, and its error ends the wait. Empty: waits end with the work
// alone. Threads: any; waits that have begun keep what they began with.
void end_waits(std::function<base::Status()> look);

}  // namespace sluice::pjrt
