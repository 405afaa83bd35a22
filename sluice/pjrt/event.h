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

// Move-only. An empty event is ready and without error. Errors carry the plugin's code and text. Threads:
// any, one at a time. Dropping an event does not cancel the work.
class Event {
 public:
  Event() = default;
  // Takes ownership of the plugin's event; null gives an empty one.
  Event(const Api& api, c::PJRT_Event* event);
  Event(Event&&) noexcept = default;
  Event& operator=(Event&&) noexcept = default;

  // Blocks until the work is over or the wait is ended (end_waits). It may be called repeatedly.
  base::Status await() const;
  bool ready() const;
  // Calls `callback` once when the work is over: on one of the plugin's threads, or here if it is already
  // over. It must not block, nor drop the last reference to a client.
  void on_ready(std::function<void(base::Status)> callback) const;
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  struct Handle;
  struct Callback;
  std::shared_ptr<Handle> handle_;  // shared with callbacks that are still to come
};

// Makes waits end if a device's work needs other processes, which may be lost, so that the work never ends.
// Each wait on an event then calls `look` now and then, and its error ends the wait. Empty: only the end of
// the work ends a wait. Threads: any; waits that have begun keep the `look` that they began with.
void end_waits(std::function<base::Status()> look);

}  // namespace sluice::pjrt
