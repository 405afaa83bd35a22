// The epoch, the number of examples and the rate that a session's steps trained with.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "sluice/session/rate.h"
#include "sluice/session/rates/step_log.h"

namespace sluice::sessions {

// Each step counts the batch that was handed out last, so batches without a step, such as an evaluation's, do
// not count. The feed of that batch is the epoch, which began when the feed was made. Threads: one.
class StepMeter {
 public:
  // A feed of batches.
  struct Source {
    int64_t epoch;  // below 0: one more than the previous epoch
    double start;   // monotonic seconds
  };
  struct Handed {
    int64_t examples = 0, tokens = 0;  // on all replicas of this process
    double starving = 0;
  };

  StepMeter(double now, int replicas) : replicas_(replicas), rates_(now, replicas) {}

  // Counts a batch; batch.starving are the seconds that the loop waited for it with no program on the device.
  // Returns whether a new stretch of steps begins with it, at take_begin(): it is from a feed made after the
  // last step, or it follows an evaluation, which is two or more batches of another feed without a step. The
  // work since the last step then belongs to no step.
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
  // Counts a step, or a part of an accumulated step.
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
  // Returns the work of the step whose last part was just counted, without its FLOPs.
  StepWork take_work() { return std::exchange(work_, {}); }
  // Returns the earliest begin of the next step; 0: it only depends on the previous step.
  double take_begin() { return std::exchange(begin_, 0); }
  // The number of the epoch, from 0.
  int64_t epoch() const { return epoch_ < 0 ? 0 : epoch_; }
  Rates take(double now) { return rates_.take(now); }
  // The examples and the waits of all epochs; evaluations' waits count too.
  int64_t all_examples() const { return all_examples_; }
  double starving() const { return starving_; }

 private:
  int replicas_;
  std::shared_ptr<const Source> handed_out_, current_;
  int64_t examples_ = 0, tokens_ = 0;  // of the batch handed out last, if no step has counted it
  StepWork work_;                      // since the last step
  int others_ = 0;                     // batches of other feeds since the last step
  double begin_ = 0, last_step_ = 0;
  int64_t epoch_ = -1, all_examples_ = 0;
  double starving_ = 0;
  RateTracker rates_;
};

}  // namespace sluice::sessions
