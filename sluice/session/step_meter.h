// What the steps of a session trained on: which epoch, how many examples, how quickly.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "sluice/session/rate.h"
#include "sluice/session/rates/step_log.h"

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
  struct Handed {
    int64_t examples = 0, tokens = 0;  // on all replicas of this process
    double starving = 0;
  };

  StepMeter(double now, int replicas) : replicas_(replicas), rates_(now, replicas) {}

  // `starving`: seconds that it was waited for, with no program on the device. Whether another stretch of
  // steps begins with this batch, at begin(): of a feed that was made after the last step, or behind an
  // evaluation, which is two batches or more of another feed without a step. What was done since the last
  // step is then no step's.
  bool hand_out(const std::shared_ptr<const Source>& source, const Handed& batch, double now) {
    const bool is_new = source != handed_out_ && source->start >= last_step_;
    const bool behind_evaluation = source == current_ && others_ >= 2;
    if (is_new || behind_evaluation) {
      begin_ = is_new ? source->start : now - batch.starving;
      work_ = {};
    }
    others_ = source == current_ ? 0 : others_ + 1;
    handed_out_ = source;
    examples_ = batch.examples;
    tokens_ = batch.tokens;
    starving_ += batch.starving;
    work_.starving += batch.starving;
    return is_new || behind_evaluation;
  }
  // Also for a part of an accumulated step.
  void step(double now) {
    if (handed_out_ != current_) {
      current_ = handed_out_;
      epoch_ = current_->epoch >= 0 ? current_->epoch : epoch_ + 1;
      rates_ = RateTracker(current_->start, replicas_);
    }
    rates_.add(examples_);
    all_examples_ += examples_;
    work_.examples += std::exchange(examples_, 0);
    work_.tokens += std::exchange(tokens_, 0);
    others_ = 0;
    last_step_ = now;
  }
  // What the step did whose last part has just been counted, but for its FLOPs.
  StepWork take_work() { return std::exchange(work_, {}); }
  // When the next step begins at the earliest; 0: nothing but the step before it says so.
  double take_begin() { return std::exchange(begin_, 0); }
  // From 0.
  int64_t epoch() const { return epoch_ < 0 ? 0 : epoch_; }
  Rates take(double now) { return rates_.take(now); }
  // Of all epochs, evaluations' waits too.
  int64_t all_examples() const { return all_examples_; }
  double starving() const { return starving_; }

 private:
  int replicas_;
  std::shared_ptr<const Source> handed_out_, current_;
  int64_t examples_ = 0, tokens_ = 0;  // of the batch that was handed out and that no step has counted
  StepWork work_;                      // since the last step
  int others_ = 0;                     // batches of other feeds since then
  double begin_ = 0, last_step_ = 0;
  int64_t epoch_ = -1, all_examples_ = 0;
  double starving_ = 0;
  RateTracker rates_;
};

}  // namespace sluice::sessions
