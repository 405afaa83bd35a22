#include "sluice/train/run/run_limits.h"

#include "sluice/base/clock.h"
#include "sluice/base/text/join.h"
#include "sluice/train/run/signals.h"

namespace sluice::train {

RunLimits::RunLimits(const RunSetup& given, const RunState& state, const TestClock* test_clock)
    : given_(given), state_(state), test_clock_(test_clock), saved_(state.started) {}

void RunLimits::begin() { saved_at_ = given_.session.steps(); }

Halt RunLimits::reached() const {
  const TrainOptions& options = given_.options;
  if (options.max_steps > 0 && state_.progress.step >= options.max_steps) return Halt::kMaxSteps;
  const bool late = options.max_seconds > 0 && state_.seconds() >= options.max_seconds;
  return late ? Halt::kMaxTime : Halt::kNone;
}

Halt RunLimits::agreed_halt() const {
  const bool late = reached() == Halt::kMaxTime;
  const bool signal = SignalGuard::pending() != 0;
  if (!given_.session.agree_to_stop(signal || late)) return Halt::kNone;
  for (const std::string& reason : given_.session.gather_on_host("halt", signal ? "signal" : "time"))
    if (reason == "signal") return Halt::kSignal;
  return Halt::kMaxTime;
}

bool RunLimits::agreed_save() const {
  if (given_.options.save_minutes == 0) return false;
  const bool late = base::monotonic_seconds() - saved_ >= 60 * given_.options.save_minutes;
  return given_.session.agree_to(base::str("save after step ", saved_at_), late);
}

bool RunLimits::agreed_test() const {
  if (test_clock_ == nullptr) return false;
  const bool late = test_clock_->seconds() >= 60 * given_.options.test_every_minutes;
  return given_.session.agree_to(base::str("test after step ", test_clock_->session_step()), late);
}

void RunLimits::saves() {
  saved_ = base::monotonic_seconds();
  saved_at_ = given_.session.steps();
}

bool RunLimits::stops_alone() const { return given_.session.processes() == 1 && SignalGuard::pending() != 0; }

}  // namespace sluice::train
