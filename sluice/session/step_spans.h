// The steps of a session in profiles: marks each step, and takes the profile that was asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "sluice/profile/capture.h"
#include "sluice/profile/service/step_requests.h"
#include "sluice/session/backend.h"

namespace sluice::sessions {

// Takes profiles of steps. Threads: the session's.
class StepSpans {
 public:
  struct Wish {
    int64_t first = 0, end = 0;  // steps [first, end), counted from 1
    std::string folder, run;     // as profile::write() takes them
    profile::About about;
  };

  // `requests`: the requests of other threads; null if there can be none.
  StepSpans(std::shared_ptr<const Backend> backend, std::shared_ptr<profile::StepRequests> requests)
      : backend_(std::move(backend)), requests_(std::move(requests)) {}
  ~StepSpans();
  StepSpans(const StepSpans&) = delete;
  StepSpans& operator=(const StepSpans&) = delete;

  // Asks for a profile; replaces an earlier wish that has not begun.
  void ask(Wish wish, int64_t steps);
  // Called after each step; `steps` includes it.
  void step(int64_t steps);
  // Called at the session's end: writes or hands out what has been recorded, and reports a profile without
  // steps.
  void finish(int64_t steps);

 private:
  void wait() const;
  // Starts the wish's, or the request's, profile if its first step is the next one.
  void begin(int64_t steps);
  void begin_request(int64_t steps);
  base::Status start_capture();
  profile::Captured stop_capture();
  void end(int64_t steps);
  void end_request();
  void write(const Wish& wish, const profile::Captured& captured, int64_t steps) const;

  std::shared_ptr<const Backend> backend_;
  std::shared_ptr<profile::StepRequests> requests_;
  std::optional<Wish> wish_;
  std::shared_ptr<profile::StepRequest> request_;
  std::optional<profile::Capture> capture_;
  bool of_request_ = false;  // whether the capture belongs to the request; else to the wish
  int64_t step_began_ = 0;   // nanoseconds of span_clock(); 0: not known
  std::thread upload_;       // uploads a profile that goes to a bucket
};

// Returns what a profile of this process says about the process.
profile::About describe_process(const Backend& backend, int process, int processes);

}  // namespace sluice::sessions
