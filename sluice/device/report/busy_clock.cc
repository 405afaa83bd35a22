#include "sluice/device/report/busy_clock.h"

#include <atomic>
#include <memory>

#include "sluice/base/clock.h"
#include "sluice/device/report/metrics.h"

namespace sluice::device {

BusyClock& BusyClock::get() {
  static auto* clock = new BusyClock();
  return *clock;
}

void BusyClock::begin() {
  std::scoped_lock lock(mutex_);
  if (running_++ == 0) since_ = base::monotonic_seconds();
}

void BusyClock::end() {
  std::scoped_lock lock(mutex_);
  if (--running_ == 0) sum_ += base::monotonic_seconds() - since_;
}

void BusyClock::end_after(std::span<const pjrt::Event> done) {
  // One more than there are events, so that the last of them cannot end the time before all are known.
  auto left = std::make_shared<std::atomic<size_t>>(done.size() + 1);
  const auto one_less = [this, left](const base::Status&) {
    if (left->fetch_sub(1) == 1) end();
  };
  for (const pjrt::Event& event : done) event.on_ready(one_less);
  one_less({});
}

double BusyClock::seconds() const {
  std::scoped_lock lock(mutex_);
  return sum_ + (running_ > 0 ? base::monotonic_seconds() - since_ : 0);
}

void BusyClock::restart() {
  std::scoped_lock lock(mutex_);
  sum_ = 0;
  since_ = base::monotonic_seconds();
}

}  // namespace sluice::device
