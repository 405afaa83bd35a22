#include "sluice/session/status_report.h"

#include <utility>

#include "sluice/base/clock.h"

namespace sluice::sessions {

void describe_stretch(monitor::ProcessStatus& status, const StatusReport::Counts& begin,
                      const StatusReport::Counts& end, double seconds) {
  const auto steps = static_cast<double>(end.steps - begin.steps);
  status.step = end.steps;
  status.epoch = end.epoch;
  status.step_ms = steps > 0 ? 1000 * seconds / steps : 0;
  status.rate = seconds > 0 ? static_cast<double>(end.examples - begin.examples) / seconds : 0;
  const double starving = end.starving - begin.starving;
  const TimeParts parts = end.has_programs ? time_parts(seconds, begin.times, end.times, starving)
                                           : eager_time_parts(seconds, starving);
  status.shares.reset();
  if (const double whole = parts.seconds(); whole > 0)
    status.shares = {parts.input / whole, parts.trace / whole, parts.device / whole};
}

StatusReport::StatusReport(monitor::ProcessIdentity identity) {
  status_.identity = std::move(identity);
  status_.time = base::wall_seconds();
  last_ = base::monotonic_seconds();
  file_.write(status_);
}

void describe_steps(monitor::ProcessStatus& status, const StepRates& rates) {
  status.step_p50_ms = rates.p50_ms;
  status.step_p95_ms = rates.p95_ms;
  status.tokens_per_second = rates.tokens_per_second;
  status.flops_per_second = rates.flops_per_second;
  status.mfu = rates.mfu;
  status.memory_in_use = rates.memory_in_use;
  status.memory_peak = rates.memory_peak;
}

void StatusReport::write(const Counts& counts, const StepRates& rates, double now) {
  {
    const std::lock_guard lock(mutex_);
    describe_stretch(status_, before_, counts, now - last_);
    describe_steps(status_, rates);
    status_.time = base::wall_seconds();
  }
  before_ = counts;
  last_ = now;
  file_.write(status_);
}

void StatusReport::set_profiler(const std::string& address) {
  {
    const std::lock_guard lock(mutex_);
    status_.identity.profiler = address;
  }
  file_.write(status_);
}

monitor::ProcessStatus StatusReport::latest() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

profile::Figures figures_of(const monitor::ProcessStatus& status) {
  profile::Figures figures{.step = status.step,
                           .epoch = status.epoch,
                           .step_ms = status.step_ms,
                           .rate = status.rate,
                           .input = {},
                           .trace = {},
                           .device = {}};
  if (!status.shares) return figures;
  figures.input = status.shares->input;
  figures.trace = status.shares->trace;
  figures.device = status.shares->device;
  return figures;
}

}  // namespace sluice::sessions
