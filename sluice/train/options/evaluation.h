// The options of tests, and of what follows from their values.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/metrics/metric_name.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct EvaluationSection {
  int64_t test_every_epochs = 1;
  int64_t test_every_steps = 0;    // updates of the run, in addition; 0: no tests within epochs
  double test_every_minutes = 0;   // a test within an epoch after N minutes without one; 0: never
  int64_t patience = 0;            // the run ends after this number of tests without a better value; 0: never
  double min_delta = 0;            // patience only counts a value as better if it is by more than this
  int64_t limit_test_batches = 0;  // of each replica; 0: the whole test set
  double target_accuracy = 0;      // percent
  std::vector<sluice::metrics::MetricName> metrics;  // of each test besides loss and accuracy
};

}  // namespace sluice::train

SLUICE_API_END
