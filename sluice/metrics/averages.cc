#include "sluice/metrics/averages.h"

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/metrics/sums.h"

namespace sluice::metrics {

void check_classes(const char* type, int64_t classes) {
  if (classes < 1)
    throw_error(Code::kInvalidArgument,
                base::str(type, ": expected the number of classes (1: yes or no), found ", classes));
}

void append_average(const std::string& name, Average average, const std::vector<ClassNumber>& classes,
                    int64_t count, Values& values) {
  if (average == Average::kClasses) {
    for (size_t c = 0; c < classes.size(); ++c)
      values.numbers.push_back(
          {base::str(name, "/", c), classes[c].number, static_cast<int64_t>(classes[c].samples)});
    return;
  }
  double sum = 0, weights = 0;
  for (const ClassNumber& one : classes) {
    const double weight = average == Average::kWeighted ? one.samples : one.occurs ? 1 : 0;
    sum += weight * one.number;
    weights += weight;
  }
  values.numbers.push_back({name, share(sum, weights), count});
}

}  // namespace sluice::metrics
