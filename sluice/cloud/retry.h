// When a request is tried again, and how long it waits before.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "sluice/base/result.h"

namespace sluice::cloud {

struct RetryPolicy {
  double first = 1;      // seconds before the second try; doubled for each further one …
  double longest = 32;   // … up to this
  double give_up = 300;  // seconds without any progress after which the error is final
};

// The policy of SLUICE_CLOUD_RETRY=FIRST:LONGEST:GIVE_UP (seconds), or the default.
base::Result<RetryPolicy> retry_policy_of_environment();

// Time as the cloud room sees it; tests put their own in its place.
struct Clock {
  // Seconds on a clock that never goes back.
  std::function<double()> now;
  // Sleeps, less when `*cancelled` (which may be null) becomes true.
  std::function<void(double seconds, const std::atomic<bool>* cancelled)> sleep;
  static Clock real();
};

// One operation's waits: exponential, each with a jitter of its own, so that the hosts of a pod that failed
// together do not come back together. Threads: one at a time.
class Backoff {
 public:
  Backoff(const RetryPolicy& policy, const Clock& clock, const std::atomic<bool>* cancelled = nullptr)
      : policy_(policy), clock_(clock), cancelled_(cancelled), since_(clock.now()) {}

  // Something was achieved: the next failure is the first again.
  void progress();
  // Waits before the next try, at least `retry_after` seconds (what the server asked for). The error is
  // `cause` when it has lasted too long, or kCancelled. From the second failure on, a warning says what
  // happened.
  base::Status wait(const Error& cause, std::optional<double> retry_after = std::nullopt);
  int failures() const { return failures_; }

 private:
  RetryPolicy policy_;
  Clock clock_;
  const std::atomic<bool>* cancelled_;
  double since_;
  int failures_ = 0;
};

// What a cancelled operation returns.
inline tl::unexpected<Error> cancelled_error(const std::string& what) {
  return base::fail(Code::kCancelled, what, ": cancelled");
}

}  // namespace sluice::cloud
