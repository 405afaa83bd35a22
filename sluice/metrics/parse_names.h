// The names of metrics, read from a command line and checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/metrics/metric_name.h"

namespace sluice::metrics {

// Returns the end of a metric's name for an average: "_micro"; "" for kMacro.
const char* suffix(Average average);

// Parses the names of metrics of a classification, separated by commas: top5, precision, recall, f1 or
// another fBETA, auroc (each of these four also with _micro, _weighted or _classes appended; auroc without
// _micro), confusion, perplexity. Fails with kInvalidArgument, beginning with `what`, for an unknown name
// (with the nearest) and a repeated name.
base::Result<std::vector<MetricName>> parse_names(const std::string& what, const std::string& text);
// Fails likewise for a k above `classes`.
base::Status check_names(const std::string& what, const std::vector<MetricName>& names, std::int64_t classes);

}  // namespace sluice::metrics
