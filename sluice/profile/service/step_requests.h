// Between the thread that trains and those that ask it for profiles of steps to come.
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

// One profile that is wanted. Threads: any.
class StepRequest {
 public:
  explicit StepRequest(StepRange steps) : steps(steps) {}
  const StepRange steps;

  // Of the thread that trains, once.
  void answer(base::Result<Captured> result) { promise_.set_value(std::move(result)); }
  bool is_cancelled() const { return cancelled_; }
  // Of who asked.
  std::future<base::Result<Captured>> result() { return promise_.get_future(); }  // once
  void cancel() { cancelled_ = true; }

 private:
  std::promise<base::Result<Captured>> promise_;
  std::atomic<bool> cancelled_{false};
};

class StepRequests {
 public:
  // How far the training is.
  struct Progress {
    int64_t steps = 0;
    int64_t time = 0;  // nanoseconds of span_clock() at the end of the last step; 0: there was none
  };

  // Of the thread that trains, at the end of each step: two stores and a load.
  void step(int64_t steps);
  // A request that has come; null for none. Whoever takes it answers it.
  std::shared_ptr<StepRequest> take();
  // No step follows: requests that nobody has taken, and those to come, fail.
  void end();

  // Of other threads.
  Progress progress() const;
  // kUnavailable while another one waits to be taken, kOutOfRange when the training has ended.
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
