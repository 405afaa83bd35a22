// The steps of a session in profiles: marks each one, and takes the profile that was asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sluice/profile/capture.h"
#include "sluice/session/backend.h"

namespace sluice::sessions {

// Threads: the session's.
class StepSpans {
 public:
  struct Wish {
    int64_t first = 0, end = 0;  // steps [first, end), counted from 1
    std::string folder, run;
    int process = 0, processes = 1;
  };

  explicit StepSpans(std::shared_ptr<const Backend> backend) : backend_(std::move(backend)) {}

  // Replaces a wish that has not begun.
  void ask(Wish wish, int64_t steps);
  // A step is over; `steps` with it.
  void step(int64_t steps);
  // At the session's end: what is there is written, and where nothing is, that is said.
  void finish(int64_t steps);

 private:
  void wait() const;
  void begin(int64_t steps);
  void end(int64_t steps);

  std::shared_ptr<const Backend> backend_;
  std::optional<Wish> wish_;
  std::optional<profile::Capture> capture_;
  int64_t step_began_ = 0;  // nanoseconds of span_clock(); 0: not known
};

}  // namespace sluice::sessions
