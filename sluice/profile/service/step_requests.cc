#include "sluice/profile/service/step_requests.h"

#include <utility>

#include "sluice/base/text/join.h"

namespace sluice::profile {

void StepRequests::step(int64_t steps) {
  steps_.store(steps, std::memory_order_relaxed);
  time_.store(base::span_clock(), std::memory_order_relaxed);
}

std::shared_ptr<StepRequest> StepRequests::take() {
  if (!asked_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  asked_ = false;
  return std::exchange(waiting_, nullptr);
}

void StepRequests::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  if (waiting_) waiting_->answer(tl::unexpected<Error>(ended()));
  waiting_ = nullptr;
}

StepRequests::Progress StepRequests::progress() const {
  return {steps_.load(std::memory_order_relaxed), time_.load(std::memory_order_relaxed)};
}

base::Result<std::shared_ptr<StepRequest>> StepRequests::ask(StepRange steps) {
  const std::lock_guard lock(mutex_);
  if (ended_) return tl::unexpected<Error>(ended());
  if (waiting_ && !waiting_->is_cancelled())
    return base::fail(Code::kUnavailable,
                      "a profile of this process is being taken; try again when it is done");
  if (waiting_) waiting_->answer(base::fail(Code::kCancelled, "nobody waits for it"));
  waiting_ = std::make_shared<StepRequest>(steps);
  asked_.store(true, std::memory_order_release);
  return waiting_;
}

Error StepRequests::ended() const {
  return Error(Code::kOutOfRange, base::str("the training has ended, at step ", steps_.load()));
}

}  // namespace sluice::profile
