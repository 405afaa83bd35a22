// The steps of a session one by one: when each ended on the device, and the work it did.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "sluice/stablehlo/flops.h"

namespace sluice::sessions {

// The work of a step in this process; 0: not known.
struct StepWork {
  int64_t examples = 0, tokens = 0;  // on all replicas of this process
  double starving = 0;               // seconds that it waited for input, with no program on the device
  std::optional<stablehlo::Flops> flops = {};  // on one replica
};

// Several steps together. A step's `seconds` run from the end of the step before it to its own end, both as
// the device delivered them; for the first step of an epoch or after an evaluation, from when the epoch began
// or the steps resumed.
struct StepWindow {
  int64_t steps = 0;
  double seconds = 0;
  double p50 = 0, p95 = 0;  // the least seconds that 50 % and 95 % of the steps do not exceed
  StepWork work;            // of all steps; without FLOPs if those of one step are not known
};

// Threads: the session's, except for the functions that step() returns.
class StepLog {
 public:
  using End = std::function<void(double)>;

  StepLog();
  // Sets the earliest time at which the next step begins; it never begins before the previous step ends.
  void begin(double now) { begin_ = now; }
  // Records that the next step has been launched. The returned function must be called once, from any thread,
  // with the time when the step's programs ended. A step that does not count (it compiled) is in no window.
  End step(const StepWork& work, bool counts = true);
  int64_t steps() const { return next_; }

  // The position of one reader of windows.
  struct Reader {
    int64_t next = 0;
  };
  // Returns the steps after those the reader has had, as far as they have ended; at most the last kKept. With
  // `until`: up to this step, counted from 1; all of them must have run, and the call only waits until their
  // ends are reported.
  StepWindow take(Reader& reader, std::optional<int64_t> until = std::nullopt);

  static constexpr int64_t kKept = 16384;

 private:
  struct Step {
    StepWork work;
    double begin = 0;  // the earliest
    bool counts = true;
    std::optional<double> seconds;  // set once it has ended; empty: not known when it began
  };
  struct Ends;
  void settle(std::optional<int64_t> until);

  std::shared_ptr<Ends> ends_;  // of the steps from settled_ on
  std::deque<Step> kept_;       // the steps from next_ - kept_.size() on
  int64_t next_ = 0;            // the next step's number, from 0
  int64_t settled_ = 0;         // the number of steps whose ends have been taken
  double begin_ = 0, last_end_ = 0;
};

}  // namespace sluice::sessions
