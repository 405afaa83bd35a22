// Keeps a run going over the loss of its slice: the state machine of `sluice keep`, over what it acts on.
#pragma once

#include <optional>
#include <string>

#include "sluice/base/result.h"
#include "sluice/provision/remote/slice_view.h"

namespace sluice::provision {

// Threads: one. Times in seconds, money in US dollars.
class KeptRun {
 public:
  virtual ~KeptRun() = default;

  virtual base::Result<SliceView> look() = 0;
  // Deletes the node and the queue's entry; returns when nothing of that name is listed any longer.
  virtual base::Status remove_slice() = 0;
  // Makes it, in the zones that it may be in; returns when it is usable. kResourceExhausted: no capacity in
  // any of them; kUnavailable and kDeadlineExceeded: it may help to try again; kCancelled: a signal came. Any
  // other error is final.
  virtual base::Status create_slice() = 0;

  // Starts the run: for the first time with restart 0.
  virtual base::Status start_run(int restart) = 0;
  virtual std::optional<int> run_status() = 0;  // its exit status, once it has ended
  virtual void stop_run() = 0;                  // SIGTERM: the workers save
  virtual void kill_run() = 0;

  virtual std::string delete_command() = 0;  // with which the user ends the slice
  virtual double dollars() = 0;              // what the slice has cost so far, at list prices
  virtual int signal() = 0;                  // SIGINT or SIGTERM that has come to this program; 0: none
  virtual double now() = 0;                  // never goes back
  virtual void sleep(double seconds) = 0;
  virtual void say(const std::string& text) = 0;
};

struct KeepLimits {
  int max_restarts = 100;
  double max_cost = 0;    // 0: none
  double poll = 10;       // between two looks at the slice
  double patience = 300;  // a slice in an unsteady state counts as lost after so long
  double save = 120;      // for the run to end after SIGTERM
  double retry = 60;      // between two tries to make a slice
  double quick = 60;      // a run that fails sooner has not got going
};

class Keeper {
 public:
  Keeper(KeptRun& run, const KeepLimits& limits) : run_(run), limits_(limits) {}

  // Until the run has ended well (0), for good (its own status), at a limit (1) or by a signal (130, 143).
  // The slice stays when the run has ended by itself or by a signal, and goes at --max-cost.
  int to_end();

 private:
  // Why watch_run() came back.
  enum class Outcome { kEnded, kSliceLost, kSignal, kTooDear };

  bool make_ready();
  bool step_to_ready(const SliceView& view);
  bool replace_slice(const SliceView& view);
  bool is_refused(const Error& error, const std::string& what);
  bool is_to_end();
  bool is_lost(const SliceView& view);
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
  bool is_doubted_ = false;  // the slice says that it is well, and no run gets going on it
  double started_ = 0;
  std::optional<double> unsteady_since_;
  std::string trouble_;  // what was said of the slice last
  int status_ = 1;       // with which this ends, and what is said then
  std::string why_;
};

}  // namespace sluice::provision
