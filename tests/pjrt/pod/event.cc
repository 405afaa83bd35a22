#include "tests/pjrt/pod/event.h"

namespace emulated_pod {

void Event::set(Status status) {
  std::vector<std::function<void(const Status&)>> callbacks;
  {
    std::lock_guard lock(mutex_);
    status_ = std::move(status);
    ready_ = true;
    callbacks.swap(callbacks_);
    changed_.notify_all();
  }
  for (const auto& callback : callbacks) callback(status_);
}

bool Event::ready() const {
  std::lock_guard lock(mutex_);
  return ready_;
}

Status Event::await() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_; });
  return status_;
}

void Event::on_ready(std::function<void(const Status&)> callback) {
  {
    std::lock_guard lock(mutex_);
    if (!ready_) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback(status_);
}

}  // namespace emulated_pod
