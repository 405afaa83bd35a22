// The tests of a run: over all of its test sets, and which one is the best.
#pragma once

#include <optional>
#include <string>

#include "sluice/metrics/metrics.h"
#include "sluice/train/report/run_log.h"
#include "sluice/train/run/callback_list.h"
#include "sluice/train/run/run_limits.h"
#include "sluice/train/run/run_setup.h"
#include "sluice/train/run/run_state.h"

namespace sluice::train {

// Threads: the session's. Errors are thrown.
class TestRunner {
 public:
  // All of them live longer.
  TestRunner(const RunSetup& given, RunState& state, const RunLimits& limits, const CallbackList& callbacks,
             RunLog& log)
      : given_(given), state_(state), limits_(limits), callbacks_(callbacks), log_(log) {}
  // Whether a test is due at the end of an epoch; `last`: the run ends here.
  bool is_due(bool last) const;
  // Measures all test sets, reports the values and sets the state's `best`. Returns false if a signal came,
  // and then reports nothing.
  bool run();
  const metrics::Values& values() const { return values_; }  // of the last test

 private:
  // Returns the values over one set; empty: a signal came. `name`: "" for the first set.
  std::optional<metrics::Values> measure(const Input& set, const std::string& name);
  // Stores the value of a test if it is the best so far.
  void judge(const metrics::Values& values);
  // Writes the confusion matrix of the test that `row` describes.
  void write_matrix(const torch::Tensor& matrix, const Measurement& row);

  const RunSetup& given_;
  RunState& state_;
  const RunLimits& limits_;
  const CallbackList& callbacks_;
  RunLog& log_;
  metrics::Values values_;
  bool noted_pairs_ = false;  // the log says that the file of the matrix has pairs only
};

}  // namespace sluice::train
