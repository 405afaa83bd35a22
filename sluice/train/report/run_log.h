// Where a run reports to: the console, the tables and curves of its log folder, and MLflow.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sluice/train/hyper_parameters.h"
#include "sluice/train/log/console.h"
#include "sluice/train/log/metrics_writer.h"
#include "sluice/train/log/tensor_logs.h"
#include "sluice/train/run/run_setup.h"
#include "sluice/train/run/run_state.h"
#include "sluice/train/tracking/mlflow_run.h"

namespace sluice::train {

// Only the leader writes tables; the other processes have silent consoles. Errors are thrown. Threads: the
// session's.
class RunLog {
 public:
  // Both live longer.
  RunLog(const RunSetup& given, const RunState& state);
  Console& console() { return console_; }
  // The console for what each worker prints (--log-workers).
  Console& worker_console() { return own_console_ ? *own_console_ : console_; }
  bool all_workers_log() const { return given_.options.log_workers == LogWorkers::kAll; }
  void line(const std::string& text) { console_.line(text); }
  void json(const std::string& object) { console_.json(object); }

  // Opens the tables in `folder`, a folder of this machine, and the run of --mlflow. The run is at its first
  // step. `rows`, unless it is null, is held while a row is written; it lives longer.
  void open(const std::string& folder, std::mutex* rows);
  MetricsWriter* metrics() { return metrics_ ? &*metrics_ : nullptr; }  // null on other processes
  // Writes a row to the tables and, with --json, to the console.
  void write(const Measurement& row);
  TensorLogs& tensors() { return tensors_; }
  // Writes a text for TensorBoard at the current step.
  void text(const std::string& tag, const std::string& markdown);
  // Writes the images, histograms and scalars that have arrived; with `wait` all of them.
  void deliver(bool wait) { tensors_.deliver(metrics_ ? &metrics_->events() : nullptr, wait); }
  void end_tables();  // for a run that ended well
  // Ends the run of MLflow, within `seconds`; `status` as MlflowRun::end takes it.
  void end_mlflow(const char* status, double seconds);

 private:
  void open_mlflow(const std::vector<HyperParameter>& parameters);

  const RunSetup& given_;
  const RunState& state_;
  Console console_;                     // the leader's
  std::optional<Console> own_console_;  // another process's, with --log-workers all
  std::optional<MetricsWriter> metrics_;
  std::unique_ptr<MlflowRun> mlflow_;  // for --mlflow, on the leader
  TensorLogs tensors_;
};

}  // namespace sluice::train
