// The steps of a session one by one: when each was over on the device, and what it did.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "sluice/stablehlo/flops.h"

namespace sluice::sessions {

// What a step did, of this process; 0: not known.
struct StepWork {
  int64_t examples = 0, tokens = 0;  // on all of its replicas
  double starving = 0;               // seconds that it waited for input, with no program on the device
  std::optional<stablehlo::Flops> flops = {};  // on one replica
};

// Some steps together. `seconds` of a step are from the end of the step before to its own, both as the device
// delivered them; of an epoch's first one, or the first one after an evaluation, from when that began.
struct StepWindow {
  int64_t steps = 0;
  double seconds = 0;
  double p50 = 0, p95 = 0;  // seconds of a step: the least that so many percent of them do not exceed
  StepWork work;            // of all of them; without FLOPs where those of one step are not known
};

// Threads: the session's, but for what step() returns.
class StepLog {
 public:
  using End = std::function<void(double)>;

  StepLog();
  // The next step begins at this moment at the earliest, or when the step before it ends.
  void begin(double now) { begin_ = now; }
  // The next step has been launched. What is returned wants to hear once, from any thread, when its programs
  // were over. A step that does not count is in no window: it compiled.
  End step(const StepWork& work, bool counts = true);
  int64_t steps() const { return next_; }

  // Where somebody who asks for windows stands.
  struct Reader {
    int64_t next = 0;
  };
  // The steps behind those that the reader has had, as far as they have ended; with `until` those up to this
  // number, counted from 1, of which nothing is to be waited for but word of their end. Of more than kKept
  // steps the last ones.
  StepWindow take(Reader& reader, std::optional<int64_t> until = std::nullopt);

  static constexpr int64_t kKept = 16384;

 private:
  struct Step {
    StepWork work;
    double begin = 0;  // the earliest
    bool counts = true;
    std::optional<double> seconds;  // once it has ended; nothing: it is not known when it began
  };
  struct Ends;
  void settle(std::optional<int64_t> until);

  std::shared_ptr<Ends> ends_;  // of the steps from settled_ on
  std::deque<Step> kept_;       // from next_ - kept_.size() on
  int64_t next_ = 0;            // its number, from 0
  int64_t settled_ = 0;         // steps whose ends have been taken
  double begin_ = 0, last_end_ = 0;
};

}  // namespace sluice::sessions
