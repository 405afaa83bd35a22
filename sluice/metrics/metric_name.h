// Metrics of a classification by their names on a command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice::metrics {

// How the numbers of the classes become one.
enum class Average {
  kMicro,     // over all samples together
  kMacro,     // the mean over the classes that labels or answers have; for AUROC over all classes
  kWeighted,  // the mean by the number of each class's samples
  kClasses    // no average: name/0, name/1, …
};

// What a name says: top5, f0.5_weighted, confusion.
struct MetricName {
  enum class Kind { kTopK, kPrecision, kRecall, kFBeta, kAuroc, kConfusion, kPerplexity };
  Kind kind = Kind::kTopK;
  std::int64_t k = 1;                 // of kTopK
  double beta = 1;                    // of kFBeta
  Average average = Average::kMacro;  // of kPrecision, kRecall, kFBeta and kAuroc
  bool operator==(const MetricName&) const = default;
};

// Returns the names as parse_names() (metrics/names.h) reads them: "top5,f0.5_weighted".
std::string text_of(const std::vector<MetricName>& names);

}  // namespace sluice::metrics
SLUICE_API_END
