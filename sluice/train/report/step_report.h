// The lines and rows of single steps.
#pragma once

#include <cstdint>
#include <memory>

#include "sluice/session/log_line.h"
#include "sluice/session/rate.h"
#include "sluice/train/checkpoints/checkpoint_keeper.h"
#include "sluice/train/report/run_log.h"
#include "sluice/train/run/run_setup.h"
#include "sluice/train/run/run_state.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// A step's values are reported once they have arrived from the device. Threads: the session's.
class StepReport {
 public:
  // All of them live longer.
  StepReport(const RunSetup& given, const RunState& state, CheckpointKeeper& checkpoints, RunLog& log)
      : given_(given), state_(state), checkpoints_(checkpoints), log_(log) {}
  // Reads the values of the update that has just been made, and ends the run if one of them is NaN or
  // infinite (unless --on-nan skip). `lr`: its learning rate. `rate`: of the epoch, for an update whose line
  // and row are due; else null.
  void report(const NamedValues& values, double lr, sessions::RateTracker* rate);
  double last_loss() const { return last_loss_; }

 private:
  void arrived(sessions::LogLine line, int64_t step, double lr, bool log);
  // Prints the line of this process only.
  void arrived_here(sessions::LogLine line, int64_t step, double lr);
  void check_finite(const sessions::LogLine& line, int64_t step, double lr);
  Measurement measurement(const sessions::LogLine& line, int64_t step, double lr) const;

  const RunSetup& given_;
  const RunState& state_;
  CheckpointKeeper& checkpoints_;
  RunLog& log_;
  double last_loss_ = 0;
  // Shows the session's pending functions whether the run still lives; they must not use it afterwards.
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace sluice::train
