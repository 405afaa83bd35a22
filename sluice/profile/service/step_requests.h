// Connects the training thread with threads that request profiles of future steps.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <string>

#include "sluice/profile/capture.h"
#include "sluice/profile/service/profiler_messages.h"

namespace sluice::profile {

// A request for one profile. Threads: any.
class StepRequest {
 public:
  explicit StepRequest(StepRange steps) : steps(steps) {}
  const StepRange steps;

  // Called once, by the training thread.
  void answer(base::Result<Captured> result) { promise_.set_value(std::move(result)); }
  bool is_cancelled() const { return cancelled_; }
  // Called by the requester.
  std::future<base::Result<Captured>> result() { return promise_.get_future(); }  // once
  void cancel() { cancelled_ = true; }

 private:
  std::promise<base::Result<Captured>> promise_;
  std::atomic<bool> cancelled_{false};
};

class StepRequests {
 public:
  // How far the training has come.
  struct Progress {
    int64_t steps = 0;
    int64_t time = 0;  // nanoseconds of span_clock() at the end of the last step; 0: no step yet
  };

  // Called by the training thread at the end of each step; costs two stores and a load.
  void step(int64_t steps);
  // Returns a new request, or null. The caller must answer it.
  std::shared_ptr<StepRequest> take();
  // No further step comes: requests that were not taken, and later ones, fail.
  void end();

  // These are called by other threads.
  Progress progress() const;
  // Errors: kUnavailable while another request waits to be taken, kOutOfRange after the training has ended.
  base::Result<std::shared_ptr<StepRequest>> ask(StepRange steps);

 private:
  Error ended() const;

  std::atomic<int64_t> steps_{0}, time_{0};
  std::atomic<bool> asked_{false};
  std::mutex mutex_;
  std::shared_ptr<StepRequest> waiting_;
  bool ended_ = false;
};

}  // namespace sluice::profile
