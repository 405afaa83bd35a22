// The record that a training process writes about itself (sluice/monitor/process_status.h): how it spent the
// time since the previous record.
#pragma once

#include <mutex>
#include <string>

#include "sluice/monitor/process_status.h"
#include "sluice/profile/service/profiler_messages.h"
#include "sluice/session/rates/step_rates.h"
#include "sluice/session/time_parts.h"

namespace sluice::sessions {

class StatusReport {
 public:
  // The counts of a session so far.
  struct Counts {
    int64_t steps = 0;
    int64_t epoch = 0;     // from 1
    int64_t examples = 0;  // of this process
    double starving = 0;   // seconds that the loop waited for a batch, with no program on the device
    DeviceTimes times;
    bool has_programs = true;  // false: all time without waiting counts as the device's
  };

  // Writes the first record.
  explicit StatusReport(monitor::ProcessIdentity identity);
  // Whether the next record is due: a second after the last one.
  bool is_due(double now) const {
    return (file_.is_on() || !status_.identity.profiler.empty()) && now - last_ >= 1;
  }
  // Writes the next record. `rates`: of the steps that have ended since the previous record.
  void write(const Counts& counts, const StepRates& rates, double now);
  // Sets the address where the process takes profiles.
  void set_profiler(const std::string& address);
  // Returns the record that was written last. Threads: any.
  monitor::ProcessStatus latest() const;

 private:
  monitor::StatusFile file_;
  mutable std::mutex mutex_;  // for latest()
  monitor::ProcessStatus status_;
  Counts before_;
  double last_ = 0;  // monotonic seconds
};

// Fills in the record of the `seconds` between two counts; the identity stays.
void describe_stretch(monitor::ProcessStatus& status, const StatusReport::Counts& begin,
                      const StatusReport::Counts& end, double seconds);
void describe_steps(monitor::ProcessStatus& status, const StepRates& rates);

profile::Figures figures_of(const monitor::ProcessStatus& status);

}  // namespace sluice::sessions
