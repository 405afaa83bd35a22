// Examples a second, as the lines of a training tell them.
#pragma once

#include <cstdint>

namespace sluice::sessions {

// Both are of one replica (a core).
struct Rates {
  double rate = 0;         // moving average from line to line: 0.4 of the old value stays
  double global_rate = 0;  // mean since the epoch began
};

// Of one epoch.
class RateTracker {
 public:
  // `replicas`: of this process, whose examples are counted.
  RateTracker(double now, int replicas) : replicas_(replicas), start_(now), last_(now) {}
  // What all of these replicas took.
  void add(int64_t examples) { examples_ += examples; }
  // The rates at a line; what was added since the line before goes into the moving average.
  Rates take(double now) {
    if (now > last_) {
      const double rate = static_cast<double>(examples_ - taken_) / (now - last_);
      rate_ = taken_ == 0 ? rate : kOld * rate_ + (1 - kOld) * rate;
      last_ = now;
      taken_ = examples_;
    }
    return {rate_ / replicas_, process_rate(now) / replicas_};
  }
  // The mean since the epoch began of all of these replicas together.
  double process_rate(double now) const {
    return now > start_ ? static_cast<double>(examples_) / (now - start_) : 0;
  }
  // Time in which nothing was trained, such as a test's, since `begin`.
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
  double rate_ = 0;  // of all of these replicas
};

}  // namespace sluice::sessions
