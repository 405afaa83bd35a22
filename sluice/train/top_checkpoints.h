// The checkpoints of the best tests: LOGDIR/top-STEP, at most as many as are wanted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/session/checkpoint.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// Where they are: a folder of this machine, or one in a bucket (remote_folder.h). Names are top-STEP.
class TopPlace {
 public:
  virtual ~TopPlace() = default;
  virtual base::Result<std::vector<std::string>> names() const = 0;
  // Nothing for what is no whole checkpoint.
  virtual base::Result<std::optional<sessions::Progress>> progress(const std::string& name) const = 0;
  virtual base::Status remove(const std::string& name) const = 0;

  static constexpr const char* kPrefix = "top-";
};
std::unique_ptr<TopPlace> top_in_folder(const std::string& logdir);

// A checkpoint is removed only when a better one is complete, so that a process that is killed leaves the
// best ones, and at most one more; whoever opens the folder again removes that. Threads: one at a time.
class TopCheckpoints {
 public:
  // Finds those of the run up to `step`, at which it goes on; the others are removed, like those that another
  // value was measured for. `test_due`: the test of that step comes again, and so does its checkpoint.
  static base::Result<TopCheckpoints> open(std::unique_ptr<TopPlace> place, int64_t keep,
                                           const Monitor& monitor, int64_t step, bool test_due = false);
  // The name for a test with this value, or nothing when it is not one of the best. Of equal ones the earlier
  // is the better.
  std::optional<std::string> add(double value, int64_t step);
  // Removes what add() has displaced, once the newest one is on the disk.
  base::Status remove_displaced();

 private:
  struct One {
    double value;
    int64_t step;
  };
  TopCheckpoints(std::unique_ptr<TopPlace> place, int64_t keep, Monitor monitor)
      : place_(std::move(place)), keep_(keep), monitor_(std::move(monitor)) {}
  // Sorts, best first, and moves what is beyond the best ones to the displaced.
  void rank();

  std::unique_ptr<TopPlace> place_;
  int64_t keep_;
  Monitor monitor_;
  std::vector<One> best_;
  std::vector<std::string> displaced_;
};

}  // namespace sluice::train
