// The checkpoints of the best tests: LOGDIR/top-STEP, at most as many as are wanted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// A folder is removed only when a better one is complete, so that a process that is killed leaves the best
// ones, and at most one more; whoever opens the folder again removes that. Threads: one at a time.
class TopCheckpoints {
 public:
  // Finds those of the run up to `step`, at which it goes on; the others are removed, like those that another
  // value was measured for.
  static base::Result<TopCheckpoints> open(const std::string& logdir, int64_t keep, const Monitor& monitor,
                                           int64_t step);
  // The folder for a test with this value, or nothing when it is not one of the best. Of equal ones the
  // earlier is the better.
  std::optional<std::string> add(double value, int64_t step);
  // Removes what add() has displaced, once the newest one is on the disk.
  base::Status remove_displaced();

 private:
  struct One {
    double value;
    int64_t step;
  };
  TopCheckpoints(std::string logdir, int64_t keep, Monitor monitor)
      : logdir_(std::move(logdir)), keep_(keep), monitor_(std::move(monitor)) {}
  std::string folder(int64_t step) const;
  // Sorts, best first, and moves what is beyond the best ones to the displaced.
  void rank();

  std::string logdir_;
  int64_t keep_;
  Monitor monitor_;
  std::vector<One> best_;
  std::vector<std::string> displaced_;
};

}  // namespace sluice::train
