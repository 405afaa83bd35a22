#include "sluice/device/report/busy_clock.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "sluice/base/span.h"
#include "sluice/device/report/metrics.h"
#include "sluice/profile/host_lines.h"

namespace sluice::device {

BusyClock& BusyClock::get() {
  static auto* clock = new BusyClock();
  return *clock;
}

int64_t BusyClock::begin() {
  std::scoped_lock lock(mutex_);
  const int64_t now = base::span_clock();
  if (running_++ == 0) since_ = now;
  return now;
}

// A span begins at the end of the program before: programs run one after the other, and the next is launched
// while one still runs.
void BusyClock::end(int64_t began) {
  std::scoped_lock lock(mutex_);
  const int64_t now = base::span_clock();
  if (--running_ == 0) sum_ += now - since_;
  base::record_span_of(profile::kProgramsTrack, profile::kProgramSpan, std::max(began, last_end_), now);
  last_end_ = now;
}

void BusyClock::end_after(std::span<const pjrt::Event> done, int64_t began) {
  // One more than the number of events, so that the last event cannot end the time before all are registered.
  auto left = std::make_shared<std::atomic<size_t>>(done.size() + 1);
  const auto one_less = [this, left, began](const base::Status&) {
    if (left->fetch_sub(1) == 1) end(began);
  };
  for (const pjrt::Event& event : done) event.on_ready(one_less);
  one_less({});
}

double BusyClock::seconds() const {
  std::scoped_lock lock(mutex_);
  return static_cast<double>(sum_ + (running_ > 0 ? base::span_clock() - since_ : 0)) / 1e9;
}

void BusyClock::restart() {
  std::scoped_lock lock(mutex_);
  sum_ = 0;
  since_ = base::span_clock();
}

}  // namespace sluice::device
