// What the steps of a session trained on: which epoch, how many examples, how quickly.
#pragma once

#include <cstdint>
#include <memory>

#include "sluice/session/rate.h"

namespace sluice::sessions {

// A step counts the batch that was handed out last. So batches that no step follows, those of an evaluation,
// do not count. The feed of that batch is the epoch, which began when the feed was made. Threads: one.
class StepMeter {
 public:
  // A feed of batches.
  struct Source {
    int64_t epoch;  // below 0: one more than the epoch before it
    double start;   // monotonic seconds
  };

  StepMeter(double now, int replicas) : replicas_(replicas), rates_(now, replicas) {}

  // `starving`: seconds that it was waited for, with no program on the device.
  void hand_out(const std::shared_ptr<const Source>& source, int64_t examples, double starving) {
    handed_out_ = source;
    examples_ = examples;
    starving_ += starving;
  }
  // Also for a part of an accumulated step.
  void step() {
    if (handed_out_ != current_) {
      current_ = handed_out_;
      epoch_ = current_->epoch >= 0 ? current_->epoch : epoch_ + 1;
      rates_ = RateTracker(current_->start, replicas_);
    }
    rates_.add(examples_);
    all_examples_ += examples_;
    examples_ = 0;
  }
  int64_t epoch() const { return epoch_ < 0 ? 0 : epoch_; }
  Rates take(double now) { return rates_.take(now); }
  // Of all epochs, evaluations' waits too.
  int64_t all_examples() const { return all_examples_; }
  double starving() const { return starving_; }

 private:
  int replicas_;
  std::shared_ptr<const Source> handed_out_, current_;
  int64_t examples_ = 0;  // of the batch that was handed out and that no step has counted
  int64_t epoch_ = -1, all_examples_ = 0;
  double starving_ = 0;
  RateTracker rates_;
};

}  // namespace sluice::sessions
