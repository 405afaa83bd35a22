#include "sluice/pjrt/cache/patience.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "sluice/base/clock.h"

namespace sluice::pjrt {

Patience::Patience(const WaitTimes& times, std::function<void()> report)
    : times_(times), report_(std::move(report)), start_(base::monotonic_seconds()) {}

bool Patience::pause(double longest) {
  const double waited = base::monotonic_seconds() - start_;
  if (waited >= times_.longest) return false;
  if (waited >= times_.unreported && report_) std::exchange(report_, nullptr)();
  const double seconds = std::min({next_, longest, times_.longest - waited});
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  next_ = std::min(next_ * 1.5, longest);
  waited_ = true;
  return true;
}

}  // namespace sluice::pjrt
