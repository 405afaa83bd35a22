// Examples a second: a moving average between marks, and the mean since the start.
#pragma once

#include <cstdint>

namespace sluice::train {

class RateTracker {
 public:
  explicit RateTracker(double now) : start_(now), last_(now) {}
  void add(int64_t examples) { examples_ += examples; }
  // Takes what was added since the last mark into the moving average; 0.4 of the old value stays.
  void mark(double now) {
    if (now <= last_) return;
    const double rate = static_cast<double>(examples_ - marked_) / (now - last_);
    rate_ = marked_ == 0 ? rate : kOld * rate_ + (1 - kOld) * rate;
    last_ = now;
    marked_ = examples_;
  }
  double rate() const { return rate_; }
  double global_rate(double now) const {
    return now > start_ ? static_cast<double>(examples_) / (now - start_) : 0;
  }
  int64_t examples() const { return examples_; }
  double start() const { return start_; }

 private:
  static constexpr double kOld = 0.4;
  double start_, last_;
  int64_t examples_ = 0, marked_ = 0;
  double rate_ = 0;
};

}  // namespace sluice::train
