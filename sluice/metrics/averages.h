// Numbers of classes, and the averages over them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/metrics/metrics.h"

namespace sluice::metrics {

// Throws kInvalidArgument, naming the metric's type, for less than one class.
void check_classes(const char* type, int64_t classes);
// The classes that labels have: no and yes where there is one score.
inline int64_t counted_classes(int64_t classes) { return classes == 1 ? 2 : classes; }
// What an average puts behind a metric's name.
const char* suffix(Average average);

struct ClassNumber {
  double number = 0;
  double samples = 0;   // with this label
  bool occurs = false;  // in the mean over the classes
};
// Appends one number, or one for each class. For kMicro there must be one class.
void append_average(const std::string& name, Average average, const std::vector<ClassNumber>& classes,
                    int64_t count, Values& values);

}  // namespace sluice::metrics
