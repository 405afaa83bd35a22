#include "sluice/pjrt/cache/remote_lock.h"

#include <unistd.h>

#include <chrono>
#include <random>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"

namespace sluice::pjrt {
namespace remote_lock_detail {

// Returns a text that no lock had before: some stores name a content's generation by the content.
std::string new_text() {
  std::random_device random;
  return base::str("process ", ::getpid(), ' ', random(), random(), '\n');
}

}  // namespace remote_lock_detail

LockState RemoteLock::take(const RemoteCache& how, const std::string& url, const WaitTimes& times,
                           Patience& patience, std::unique_ptr<RemoteLock>* lock, base::Status* error) {
  const std::string object = url + ".lock";
  std::string replaced = "0", seen;
  double changed = 0;
  for (;;) {
    if (!replaced.empty()) {
      auto written = how.write(object, remote_lock_detail::new_text(), replaced);
      if (written) {
        lock->reset(new RemoteLock(how, object, std::move(*written), times.beat));
        return LockState::kHeld;
      }
      if (written.error().code() != Code::kFailedPrecondition) {
        *error = tl::unexpected<Error>(written.error());
        return LockState::kNone;
      }
      replaced.clear();
    }
    if (!patience.pause(times.remote_pause)) return LockState::kGivenUp;
    const auto generation = how.generation(object);
    const double now = base::monotonic_seconds();
    if (!generation && generation.error().code() == Code::kNotFound) return LockState::kReleased;
    if (!generation) {
      *error = tl::unexpected<Error>(generation.error());
      return LockState::kNone;
    }
    if (*generation != seen) {
      seen = *generation;
      changed = now;
    } else if (now - changed > times.silence) {
      base::info("the process that holds ", object, " has ended, so this process takes the lock");
      replaced = std::exchange(seen, "");
    }
  }
}

RemoteLock::RemoteLock(const RemoteCache& how, std::string url, std::string generation, double seconds)
    : how_(how),
      url_(std::move(url)),
      generation_(std::move(generation)),
      thread_([this, seconds] { beat(seconds); }) {}

RemoteLock::~RemoteLock() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_one();
  thread_.join();
  if (generation_.empty()) return;
  if (auto status = how_.remove(url_, generation_); !status)
    base::debug("compile cache: ", status.error().what());
}

void RemoteLock::beat(double seconds) {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return is_over_; })) {
    lock.unlock();
    auto written = how_.write(url_, remote_lock_detail::new_text(), generation_);
    lock.lock();
    if (written) {
      generation_ = std::move(*written);
    } else if (written.error().code() == Code::kFailedPrecondition) {
      generation_.clear();
      return;
    }  // after other errors the next beat may succeed
  }
}

}  // namespace sluice::pjrt
