// Metrics by their names on a command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/metrics/metrics.h"

namespace sluice::metrics {

// Parses the names of metrics of a classification, separated by commas: top5, precision, recall, f1 or
// another fBETA, auroc (each of these four also with _micro, _weighted or _classes appended; auroc without
// _micro), confusion, perplexity. Throws kInvalidArgument, beginning with `what`, for an unknown name (with
// the nearest), a repeated name, and a k above `classes`.
std::vector<Metric> parse(const std::string& what, const std::string& names, int64_t classes);

// Returns a metric's name as lines and curves show it: Top5, F1, AUROC_weighted.
std::string label(const std::string& name);
// Whether it is shown in percent: accuracy, top5.
bool is_accuracy(const std::string& name);
// Returns a share in percent, from its two counts: 100 · part / whole, rounded once.
double percent(const Value& share);

}  // namespace sluice::metrics
