// The state machine of `sluice keep`, which keeps a run going when its slice is lost, and the interface that
// it acts on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/provision/remote/slice_view.h"

namespace sluice::provision {

// Threads: one. Times in seconds, money in US dollars.
class KeptRun {
 public:
  virtual ~KeptRun() = default;

  virtual base::Result<SliceView> look() = 0;
  // Deletes the node and the queue entry; returns when nothing of that name is listed.
  virtual base::Status remove_slice() = 0;
  // Creates the slice in one of its zones; returns when it is usable. kResourceExhausted: no capacity in any
  // of them; kUnavailable and kDeadlineExceeded: another try may help; kCancelled: a signal came. Any other
  // error is final.
  virtual base::Status create_slice() = 0;

  // The slices of several on which the next run starts; empty: all.
  virtual void use_slices(const std::vector<int>& numbers) = 0;
  // Starts the run; restart is 0 for the first start.
  virtual base::Status start_run(int restart) = 0;
  virtual std::optional<int> run_status() = 0;  // its exit status after it has ended
  virtual void stop_run() = 0;                  // SIGTERM: the workers save
  virtual void kill_run() = 0;

  virtual std::string delete_command() = 0;  // the command with which the user deletes the slice
  virtual double dollars() = 0;              // the cost of the slice so far, at list prices
  virtual int signal() = 0;                  // SIGINT or SIGTERM that this program received; 0: none
  virtual double now() = 0;                  // monotonic
  virtual void sleep(double seconds) = 0;
  virtual void say(const std::string& text) = 0;
};

struct KeepLimits {
  int max_restarts = 100;
  double max_cost = 0;    // 0: none
  int min_slices = 0;     // of several: the run continues with at least N; 0: with all
  double poll = 10;       // between two looks at the slice
  double patience = 300;  // until a slice in an unsteady state counts as lost
  double save = 120;      // for the run to end after SIGTERM
  double retry = 60;      // between two tries to make a slice
  double quick = 60;      // a run that fails sooner counts as a quick failure
};

class Keeper {
 public:
  Keeper(KeptRun& run, const KeepLimits& limits) : run_(run), limits_(limits) {}

  // Runs until the run has succeeded (0), failed for good (its own status), reached a limit (1) or a signal
  // came (130, 143). The slice stays after a run that ended by itself or by a signal, and is deleted at
  // --max-cost.
  int to_end();

 private:
  // The reason why watch_run() returned.
  enum class Outcome { kEnded, kSliceLost, kSignal, kTooDear };

  bool make_ready();
  bool step_to_ready(const SliceView& view);
  bool replace_slice(const SliceView& view);
  bool is_refused(const Error& error, const std::string& what);
  bool is_to_end();
  bool is_lost(const SliceView& view);
  bool has_its_slices(const SliceView& view) const;
  bool goes_on_with_rest(const SliceView& view);
  Outcome watch_run();
  void end_run(const std::string& why);
  bool goes_on_after_failure();
  bool is_too_dear() const;
  double pause() const;
  int finish();

  KeptRun& run_;
  const KeepLimits limits_;
  int restart_ = 0;
  int quick_failures_ = 0;  // in a row
  bool was_up_ = false, slice_stays_ = true;
  bool is_doubted_ = false;  // the slice reports READY, but runs fail at once on it
  double started_ = 0;
  std::vector<int> used_;  // the slices of the run, if it does not have all
  std::optional<double> unsteady_since_;
  std::string trouble_;  // the state of the slice that was reported last
  int status_ = 1;       // the exit status of the keeper, with the reason below
  std::string why_;
};

}  // namespace sluice::provision
