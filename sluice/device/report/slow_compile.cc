#include "sluice/device/report/slow_compile.h"

#include <chrono>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/device/report/metrics.h"

namespace sluice::device {
namespace {

constexpr double kSlow = 10;

double slow_after() {
  const auto text = base::environment("SLUICE_SLOW_COMPILE");
  return text ? base::number_of<double>(*text).value_or(kSlow) : kSlow;
}

}  // namespace

SlowCompile::SlowCompile(std::string what, size_t operations)
    : what_(std::move(what)), operations_(operations), start_(base::monotonic_seconds()) {
  const double seconds = slow_after();
  if (seconds <= 0) return;
  frames_ = frames_here();
  thread_ = std::thread([this, seconds] { watch(seconds); });
}

SlowCompile::~SlowCompile() {
  if (!thread_.joinable()) return;
  {
    std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_one();
  const double end = base::monotonic_seconds();
  thread_.join();
  if (told_) base::info("the program for '", what_, "' was compiled in ", seconds_text(end - start_));
}

void SlowCompile::watch(double seconds) {
  for (;; seconds *= 2) {
    {
      std::unique_lock lock(mutex_);
      const std::chrono::duration<double> left(start_ + seconds - base::monotonic_seconds());
      if (ended_.wait_for(lock, left, [this] { return is_over_; })) return;
    }
    const std::string place = describe_place(frames_);
    base::info(
        "the program for '", what_, "' (", operations_, " operations",
        place.empty() ? "" : base::str(", launched at ", place), ") has been compiling for ",
        seconds_text(base::monotonic_seconds() - start_),
        "; a part that repeats (layers, steps of a loop) makes it long: cut between with sluice::sync, "
        "or record less at once");
    told_ = true;
  }
}

}  // namespace sluice::device
