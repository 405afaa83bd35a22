// The checkpoints of the best tests, LOGDIR/top-STEP, up to the number that --save-top-k asks for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// The place of the checkpoints: a local folder, or one in a bucket (remote_folder.h). Names are top-STEP.
class TopPlace {
 public:
  virtual ~TopPlace() = default;
  virtual base::Result<std::vector<std::string>> names() const = 0;
  // Empty if there is no whole checkpoint of this name.
  virtual base::Result<std::optional<sessions::Progress>> progress(const std::string& name) const = 0;
  virtual base::Status remove(const std::string& name) const = 0;

  static constexpr const char* kPrefix = "top-";
};
std::unique_ptr<TopPlace> top_in_folder(const std::string& logdir);

// Removes a checkpoint only when a better one is complete, so that a process that is killed leaves the best
// ones, and at most one more; the next one that opens the folder removes that one. Threads: one at a time.
class TopCheckpoints {
 public:
  // Finds the run's checkpoints up to `step`, where it continues; removes all others, including checkpoints
  // whose value is not the monitored one. `test_due`: the test of that step and its checkpoint are
  // repeated.
  static base::Result<TopCheckpoints> open(std::unique_ptr<TopPlace> place, int64_t keep,
                                           const Monitor& monitor, int64_t step, bool test_due = false);
  // Returns the name for a test with this value; empty if it is not one of the best. Of equal values the
  // earlier one counts as better.
  std::optional<std::string> add(double value, int64_t step);
  // Removes the checkpoints that add() has displaced; call it once the newest one is on the disk.
  base::Status remove_displaced();

 private:
  struct One {
    double value;
    int64_t step;
  };
  TopCheckpoints(std::unique_ptr<TopPlace> place, int64_t keep, Monitor monitor)
      : place_(std::move(place)), keep_(keep), monitor_(std::move(monitor)) {}
  // Sorts, best first, and moves those beyond the best `keep_` to displaced_.
  void rank();

  std::unique_ptr<TopPlace> place_;
  int64_t keep_;
  Monitor monitor_;
  std::vector<One> best_;
  std::vector<std::string> displaced_;
};

}  // namespace sluice::train
