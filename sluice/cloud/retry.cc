#include "sluice/cloud/retry.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/log.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/strings.h"

namespace sluice::cloud {
namespace {

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

// Returns a number in [0.5, 1): differs between threads, processes and hosts.
double jitter() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return std::uniform_real_distribution<double>(0.5, 1)(random);
}

void sleep_for(double seconds, const std::atomic<bool>* cancelled) {
  const double end = base::monotonic_seconds() + seconds;
  for (double left = seconds; left > 0 && (cancelled == nullptr || !*cancelled);
       left = end - base::monotonic_seconds())
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, 0.05)));
}

}  // namespace

base::Result<RetryPolicy> retry_policy_of_environment() {
  RetryPolicy policy;
  const auto text = base::environment("SLUICE_CLOUD_RETRY");
  if (!text) return policy;
  const auto parts = base::split(*text, ':');
  double values[3] = {};
  bool good = parts.size() == 3;
  for (std::size_t i = 0; good && i < 3; ++i) {
    values[i] = base::number_of<double>(parts[i]).value_or(-1);
    good = values[i] >= 0;
  }
  if (!good)
    return base::fail(Code::kInvalidArgument, "SLUICE_CLOUD_RETRY=", *text,
                      ": expected FIRST:LONGEST:GIVE_UP in seconds, such as 1:32:300");
  return RetryPolicy{values[0], values[1], values[2]};
}

Clock Clock::real() { return {base::monotonic_seconds, sleep_for}; }

void Backoff::progress() {
  failures_ = 0;
  since_ = clock_.now();
}

base::Status Backoff::wait(const Error& cause, std::optional<double> retry_after) {
  if (cancelled_ != nullptr && *cancelled_) return base::fail(Code::kCancelled, cause.what(), " (cancelled)");
  double pause = policy_.first;
  for (int i = 0; i < failures_ && pause < policy_.longest; ++i) pause *= 2;
  pause = std::min(pause, policy_.longest) * jitter();
  if (retry_after) pause = std::max(pause, *retry_after);
  ++failures_;
  const double passed = clock_.now() - since_;
  if (passed + pause > policy_.give_up)
    return base::fail(cause.code(), cause.what(), " (given up after ", base::counted(failures_, "try"),
                      " in ", seconds_text(passed), ")");
  if (failures_ > 1)
    base::warn(cause.what(), "; try ", failures_ + 1, " in ", seconds_text(pause));
  else
    base::debug(cause.what(), "; next try in ", seconds_text(pause));
  clock_.sleep(pause, cancelled_);
  if (cancelled_ != nullptr && *cancelled_) return base::fail(Code::kCancelled, cause.what(), " (cancelled)");
  return {};
}

}  // namespace sluice::cloud
