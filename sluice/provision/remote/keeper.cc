#include "sluice/provision/remote/keeper.h"

#include <algorithm>
#include <cmath>
#include <csignal>

#include "sluice/base/text/join.h"

namespace sluice::provision {
namespace {

constexpr int kQuickFailures = 2;  // until the slice is doubted; on its successor, until the run is doubted

// Wrong usage, a missed target accuracy and a missing command would fail again.
bool is_final(int status) {
  return status == 0 || status == 2 || status == 21 || status == 126 || status == 127;
}

bool may_pass(Code code) {
  return code == Code::kResourceExhausted || code == Code::kUnavailable || code == Code::kDeadlineExceeded ||
         code == Code::kAborted;
}

}  // namespace

int Keeper::to_end() {
  while (true) {
    if (!make_ready()) return finish();
    run_.use_slices(used_);
    if (const auto started = run_.start_run(restart_); !started) {
      why_ = started.error().what();
      return finish();
    }
    started_ = run_.now();
    was_up_ = true;
    switch (watch_run()) {
      case Outcome::kSignal:
        end_run("told to stop");
        status_ = run_.signal() == SIGINT ? 130 : 143;
        why_ = "told to stop";
        return finish();
      case Outcome::kTooDear:
        end_run("--max-cost is reached");
        status_ = 1;
        why_ =
            base::str("--max-cost is reached: ", run_.dollars(), " $ at list prices; the slice is deleted");
        if (const auto removed = run_.remove_slice(); !removed)
          why_ = base::str("--max-cost is reached, and the slice could not be deleted: ",
                           removed.error().what());
        else
          slice_stays_ = false;
        return finish();
      case Outcome::kEnded:
        if (is_final(status_) || !goes_on_after_failure()) return finish();
        break;
      case Outcome::kSliceLost:
        quick_failures_ = 0;
        break;
    }
    if (++restart_ > limits_.max_restarts) {
      why_ = base::str("the run was started again ", limits_.max_restarts,
                       " times, as often as --max-restarts allows");
      status_ = status_ == 0 ? 1 : status_;
      return finish();
    }
    if (quick_failures_ > 0) run_.sleep(pause());
    run_.say(base::str("restart ", restart_, " of at most ", limits_.max_restarts));
  }
}

// Waits before the restart after a quick failure, which will mostly fail again: twice as long each time.
double Keeper::pause() const {
  const double seconds = std::min(limits_.retry, std::exp2(quick_failures_));
  run_.say(base::str("waiting ", seconds, " s before the restart"));
  return seconds;
}

bool Keeper::is_too_dear() const { return limits_.max_cost > 0 && run_.dollars() >= limits_.max_cost; }

// Returns whether waiting for a slice has to end.
bool Keeper::is_to_end() {
  if (run_.signal() != 0) {
    status_ = run_.signal() == SIGINT ? 130 : 143;
    why_ =
        "told to stop while there was no slice to run on; what the queue holds stays: `sluice tpu list` "
        "shows it";
    return true;
  }
  if (!is_too_dear()) return false;
  status_ = 1;
  why_ = base::str("--max-cost is reached: ", run_.dollars(), " $ at list prices");
  if (const auto removed = run_.remove_slice(); !removed)
    why_ += base::str("; and the slice could not be deleted: ", removed.error().what());
  return true;
}

// Returns when there is a slice to run on; false: the keeper ends.
bool Keeper::make_ready() {
  unsteady_since_.reset();
  while (!is_to_end()) {
    const auto view = run_.look();
    if (!view) {
      if (is_refused(view.error(), "the slice's state")) return false;
      continue;
    }
    if (view->kind == SliceView::kUp && !is_doubted_) {
      used_.clear();
      return true;
    }
    if (goes_on_with_rest(*view)) return true;
    if (!step_to_ready(*view)) return false;
  }
  return false;
}

// Returns whether the run has only some of several slices, and they are still there.
bool Keeper::has_its_slices(const SliceView& view) const {
  return !used_.empty() && std::all_of(used_.begin(), used_.end(), [&](int number) {
    return std::find(view.usable.begin(), view.usable.end(), number) != view.usable.end();
  });
}

// Returns whether enough of several slices are left for a run, and chooses them. A lost one is not created
// again before the next loss: the service makes all slices of a queue entry together.
bool Keeper::goes_on_with_rest(const SliceView& view) {
  if (is_doubted_) return false;
  if (has_its_slices(view)) return true;
  const auto left = static_cast<int>(view.usable.size());
  if (limits_.min_slices == 0 || left < limits_.min_slices || left == 0 || !is_lost(view)) return false;
  run_.say(base::str("the slice is ", view.state, ": going on with ", left, " of ", view.slices, " slices (",
                     base::join(view.usable, ", "), "), as --min-slices ", limits_.min_slices, " allows"));
  used_ = view.usable;
  return true;
}

// Waits, or creates the slice (again). Returns false if that is refused.
bool Keeper::step_to_ready(const SliceView& view) {
  if (view.kind == SliceView::kGone || is_doubted_ || is_lost(view)) return replace_slice(view);
  if (trouble_ != view.state) run_.say("the slice is " + view.state + ": waiting");
  trouble_ = view.state;
  run_.sleep(limits_.poll);
  return true;
}

bool Keeper::replace_slice(const SliceView& view) {
  const char* what = view.kind == SliceView::kGone ? ": making it" : ": deleting and re-creating it";
  run_.say(base::str("the slice is ", is_doubted_ ? "to be replaced: no run starts on it" : view.state, what,
                     view.slices == 1 ? ""
                                      : base::str(" and the others of its ", view.slices,
                                                  " slices, which are made together")));
  used_.clear();
  if (view.kind != SliceView::kGone) {
    const auto removed = run_.remove_slice();
    if (!removed) return !is_refused(removed.error(), "the slice cannot be deleted");
  }
  is_doubted_ = false;  // the next slice is another one
  unsteady_since_.reset();
  trouble_.clear();
  const auto created = run_.create_slice();
  return created || !is_refused(created.error(), "the slice cannot be made");
}

// Returns whether an error is final; waits if it is not.
bool Keeper::is_refused(const Error& error, const std::string& what) {
  if (may_pass(error.code())) {
    run_.say(base::str(what, ": ", error.what(), "; again in ", limits_.retry, " s"));
    run_.sleep(limits_.retry);
    return false;
  }
  if (error.code() == Code::kCancelled && is_to_end()) return true;
  status_ = 1;
  why_ = error.what();
  return true;
}

// Returns whether a slice that is not usable will not recover by itself.
bool Keeper::is_lost(const SliceView& view) {
  if (view.kind == SliceView::kUp) unsteady_since_.reset();
  if (view.kind == SliceView::kDown || view.kind == SliceView::kGone) return true;
  if (view.kind != SliceView::kUnsteady) return false;
  if (!unsteady_since_) unsteady_since_ = run_.now();
  return run_.now() - *unsteady_since_ >= limits_.patience;
}

Keeper::Outcome Keeper::watch_run() {
  unsteady_since_.reset();
  double next_look = run_.now();
  while (true) {
    if (const auto status = run_.run_status()) {
      status_ = *status;
      return Outcome::kEnded;
    }
    if (run_.signal() != 0) return Outcome::kSignal;
    if (is_too_dear()) return Outcome::kTooDear;
    if (run_.now() >= next_look) {
      next_look = run_.now() + limits_.poll;
      const auto view = run_.look();
      // The run may well continue while the service does not answer.
      if (!view) {
        run_.say(base::str("the slice's state is not known: ", view.error().what()));
      } else if (!has_its_slices(*view) && is_lost(*view)) {
        end_run("the slice is " + view->state);
        return Outcome::kSliceLost;
      } else if (!view->notice.empty()) {
        end_run(view->notice);
        is_doubted_ = true;
        return Outcome::kSliceLost;
      }
    }
    run_.sleep(std::min(1.0, limits_.poll));
  }
}

// Sends SIGTERM so that the workers save. A lost worker cannot answer; nobody waits for it longer.
void Keeper::end_run(const std::string& why) {
  run_.say(why + ": ending the run");
  run_.stop_run();
  const double until = run_.now() + limits_.save;
  while (!run_.run_status()) {
    if (run_.now() >= until) {
      run_.say(base::str("the run has not ended after ", limits_.save, " s: killing it"));
      run_.kill_run();
      return;
    }
    run_.sleep(std::min(0.5, limits_.poll));
  }
}

// Handles a run that fails at once, again and again, on a slice that reports READY. The service shows a lost
// machine late or never, so a new slice gets one more round.
bool Keeper::goes_on_after_failure() {
  if (run_.now() - started_ >= limits_.quick) {
    quick_failures_ = 0;
  } else if (++quick_failures_ % kQuickFailures == 0) {
    if (quick_failures_ > kQuickFailures) {
      why_ = base::str("the run has failed ", quick_failures_, " times within ", limits_.quick,
                       " s of its start, on two slices: last with status ", status_);
      return false;
    }
    is_doubted_ = true;
  }
  run_.say(base::str("the run ended with status ", status_));
  return true;
}

int Keeper::finish() {
  if (!why_.empty()) run_.say(why_);
  if (slice_stays_ && was_up_)
    run_.say(base::str("the slice stays, and costs money until it is deleted: ", run_.delete_command()));
  return status_;
}

}  // namespace sluice::provision
