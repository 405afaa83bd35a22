// Examples per second, as the log lines of a training report them.
#pragma once

#include <cstdint>

namespace sluice::sessions {

// Rates of one replica (a core), in examples per second.
struct Rates {
  double rate = 0;         // moving average from line to line: 0.4 of the old value stays
  double global_rate = 0;  // mean since the epoch began
};

// Measures the rates of one epoch.
class RateTracker {
 public:
  // `replicas`: the number of replicas of this process, whose examples are counted.
  RateTracker(double now, int replicas) : replicas_(replicas), start_(now), last_(now) {}
  // Adds examples that all replicas of this process took together.
  void add(int64_t examples) { examples_ += examples; }
  // Returns the rates at a log line; the examples since the previous line go into the moving average.
  Rates take(double now) {
    if (now > last_) {
      const double rate = static_cast<double>(examples_ - taken_) / (now - last_);
      rate_ = taken_ == 0 ? rate : kOld * rate_ + (1 - kOld) * rate;
      last_ = now;
      taken_ = examples_;
    }
    return {rate_ / replicas_, process_rate(now) / replicas_};
  }
  // The mean since the epoch began, over all replicas of this process together.
  double process_rate(double now) const {
    return now > start_ ? static_cast<double>(examples_) / (now - start_) : 0;
  }
  // Leaves out the time since `begin`, in which nothing was trained, such as a test's.
  void leave_out(double begin, double now) {
    start_ += now - begin;
    last_ += now - begin;
  }
  int64_t examples() const { return examples_; }
  double start() const { return start_; }

 private:
  static constexpr double kOld = 0.4;
  int replicas_;
  double start_, last_;
  int64_t examples_ = 0, taken_ = 0;
  double rate_ = 0;  // of all replicas of this process together
};

}  // namespace sluice::sessions
