// What a run measures of an epoch as a whole, and reports at its end.
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/session/feed.h"
#include "sluice/session/rate.h"
#include "sluice/session/time_parts.h"
#include "sluice/train/evaluation/evaluate.h"
#include "sluice/train/report/run_log.h"
#include "sluice/train/run/run_setup.h"
#include "sluice/train/run/run_state.h"

namespace sluice::train {

// Threads: the session's. Errors are thrown.
class EpochReport {
 public:
  // All of them live longer.
  EpochReport(const RunSetup& given, const RunState& state, RunLog& log)
      : given_(given), state_(state), log_(log) {}
  // Counts the tokens of the epochs before this part of the run.
  void count_tokens_before();
  // Begins an epoch, or the rest of one.
  void begin();
  sessions::RateTracker& rate() { return *rate_; }
  BatchMeans& means() { return *means_; }
  // `seconds`: how long it took to open the feed.
  void opened(double seconds) { opening_input_ = seconds; }
  void fed(const FeedStatistics& statistics) { fed_ = statistics; }
  // The time since `begin` does not count towards the epoch's; `before`: the device's times then.
  void leave_out(double begin, const sessions::DeviceTimes& before);
  // Prints the epoch's lines. Returns its row without its place in the run: the caller adds that, and writes
  // it. Call it before the state moves to the next epoch. `whole`: the epoch is over.
  Measurement end(bool whole);

 private:
  // Sums over all processes in this epoch.
  struct Totals {
    double rate = 0;  // examples per second
    int64_t examples = 0;
  };
  Totals totals(double now);
  // Reports the parts of the epoch's time and, if much of it was spent waiting for data, the cause.
  void report_times(double wall);
  // Reports the sources of a mixture in this epoch.
  void report_mixture();
  // Reports the tokens at the end of an epoch, before the next one begins.
  void report_tokens(bool whole, Measurement& row);
  // The tokens of the set in the first updates of an epoch, or in all of them; 0: there are no token files.
  std::uint64_t tokens_of(int64_t epoch, int64_t updates = -1) const;

  const RunSetup& given_;
  const RunState& state_;
  RunLog& log_;
  std::optional<sessions::RateTracker> rate_;
  std::optional<BatchMeans> means_;  // of the epoch_logs
  sessions::DeviceTimes began_;
  FeedStatistics fed_;               // of the training batches
  double opening_input_ = 0;         // seconds until the feed was ready
  std::uint64_t tokens_before_ = 0;  // of the epochs before this one; the leader's
};

}  // namespace sluice::train
