// Metrics by their names, and the names as they are shown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/metrics/metrics.h"

namespace sluice::metrics {

// Returns the metrics that the names say, for this number of classes. Throws kInvalidArgument for names that
// check_names() refuses.
std::vector<Metric> make_metrics(const std::vector<MetricName>& names, int64_t classes);

// Returns a metric's name as lines and curves show it: Top5, F1, AUROC_weighted.
std::string label(const std::string& name);
// Whether it is shown in percent: accuracy, top5.
bool is_accuracy(const std::string& name);
// Returns a share in percent, from its two counts: 100 · part / whole, rounded once.
double percent(const Value& share);

}  // namespace sluice::metrics
