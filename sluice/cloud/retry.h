// When a request is tried again, and how long it waits before that.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "sluice/base/result.h"

namespace sluice::cloud {

struct RetryPolicy {
  double first = 1;      // seconds before the second try; doubles with each further one …
  double longest = 32;   // … up to this
  double give_up = 300;  // seconds without any progress after which the error is final
};

// Returns the policy of SLUICE_CLOUD_RETRY=FIRST:LONGEST:GIVE_UP (seconds), or the default.
base::Result<RetryPolicy> retry_policy_of_environment();

// The time for this room; tests replace it.
struct Clock {
  // Seconds on a monotonic clock.
  std::function<double()> now;
  // Sleeps, shorter if `*cancelled` (which may be null) becomes true.
  std::function<void(double seconds, const std::atomic<bool>* cancelled)> sleep;
  static Clock real();
};

// The waits of one operation: exponential, each with its own jitter, so that hosts of a pod that failed
// together do not retry together. Threads: one at a time.
class Backoff {
 public:
  Backoff(const RetryPolicy& policy, const Clock& clock, const std::atomic<bool>* cancelled = nullptr)
      : policy_(policy), clock_(clock), cancelled_(cancelled), since_(clock.now()) {}

  // Reports progress: the next failure counts as the first again.
  void progress();
  // Waits before the next try, at least `retry_after` seconds (as the server requests). Returns `cause` if
  // the failures have lasted too long, or kCancelled. From the second failure on, logs a warning.
  base::Status wait(const Error& cause, std::optional<double> retry_after = std::nullopt);
  int failures() const { return failures_; }

 private:
  RetryPolicy policy_;
  Clock clock_;
  const std::atomic<bool>* cancelled_;
  double since_;
  int failures_ = 0;
};

// The error of a cancelled operation.
inline tl::unexpected<Error> cancelled_error(const std::string& what) {
  return base::fail(Code::kCancelled, what, ": cancelled");
}

}  // namespace sluice::cloud
