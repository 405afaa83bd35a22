// Numbers of classes, and the averages over them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/metrics/metrics.h"

namespace sluice::metrics {

// Throws kInvalidArgument, naming the metric's type, for less than one class.
void check_classes(const char* type, int64_t classes);
// Returns the number of classes that labels have; with one score these are no and yes.
inline int64_t counted_classes(int64_t classes) { return classes == 1 ? 2 : classes; }

struct ClassNumber {
  double number = 0;
  double samples = 0;   // with this label
  bool occurs = false;  // counts in the mean over the classes
};
// Appends one number, or one for each class. For kMicro there must be one class.
void append_average(const std::string& name, Average average, const std::vector<ClassNumber>& classes,
                    int64_t count, Values& values);

}  // namespace sluice::metrics
