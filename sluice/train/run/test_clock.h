// The time since the last test, for --test-every-minutes.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/base/clock.h"
#include "sluice/train/callback.h"

namespace sluice::train {

// Checkpoints keep the time, so that a resumed run continues it. Threads: the session's.
class TestClock final : public Callback {
 public:
  std::string name() const override { return "test clock"; }
  void begin(Run& run) override;
  void after_test(Run& run, const metrics::Values& values) override;
  std::string state() const override;
  void load(const std::string& state) override;
  // The seconds since the last test, or since the run began; without the time between its parts.
  double seconds() const { return earlier_ + since_.seconds(); }
  // The session's step at the last test, or at the start of this part of the run.
  int64_t session_step() const { return session_step_; }

 private:
  base::Stopwatch since_;
  double earlier_ = 0;  // seconds of the run's parts before this one
  int64_t session_step_ = 0;
};

}  // namespace sluice::train
