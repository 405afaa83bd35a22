// Metrics as a command line names them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/metrics/metrics.h"

namespace sluice::metrics {

// The metrics of a classification by their names, separated by commas: top5, precision, recall, f1 or another
// fBETA, auroc (each of these four also with _micro, _weighted or _classes behind it; auroc without _micro),
// confusion, perplexity. Throws kInvalidArgument, beginning with `what`, for an unknown one (with the
// nearest), one that is there twice, and a k above `classes`.
std::vector<Metric> parse(const std::string& what, const std::string& names, int64_t classes);

// A metric's name as lines and curves show it: Top5, F1, AUROC_weighted.
std::string label(const std::string& name);
// Whether it is shown in percent: accuracy, top5.
bool is_accuracy(const std::string& name);
// A share in percent, from the counts that it is the quotient of: 100 · part / whole, rounded once.
double percent(const Value& share);

}  // namespace sluice::metrics
