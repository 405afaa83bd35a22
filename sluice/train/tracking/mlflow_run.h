// A training as a run of MLflow. It never waits for the network: rows go to the log folder (mlflow_spool.h),
// and a thread sends them. While the server is away they stay there; rows that are left when the training
// ends are sent when it is started again with --resume, or by `sluice mlflow`.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/train/hyper_parameters.h"
#include "sluice/train/tracking/mlflow_server.h"
#include "sluice/train/tracking/mlflow_spool.h"

namespace sluice::train {

struct MlflowOptions {
  std::string uri, experiment, run_name;
  std::string authorization;  // see mlflow_authorization()
  std::string shown_folder;   // the log folder's name in messages
  MlflowLimits limits = {};
  double every = 1;     // the least seconds between two requests, so that several rows share one
  double longest = 30;  // the most seconds between two tries
};

// Threads: one at a time. Errors are errors of the disk. A problem of the server only causes a warning, once
// until the server takes rows again.
class MlflowRun {
 public:
  // Without `last_step`, begins a new run and drops the rows that the folder still has for an earlier one;
  // with it, continues the folder's run after this step, or begins a new one if there is none.
  static base::Result<std::unique_ptr<MlflowRun>> open(const MlflowOptions& options,
                                                       const std::string& folder,
                                                       std::optional<int64_t> last_step);
  // Only sends the rows that the folder still has. Fails with kNotFound for a folder without a run of MLflow.
  // An empty `uri` means the server that the run has been sent to.
  static base::Result<std::unique_ptr<MlflowRun>> reopen(MlflowOptions options, const std::string& folder);
  // Ends a run that has begun but not ended as FAILED, within 5 s.
  ~MlflowRun();
  MlflowRun(const MlflowRun&) = delete;
  MlflowRun& operator=(const MlflowRun&) = delete;

  // Call it before the first row: starts the thread. A parameter that the run already has with another value
  // becomes a tag "resumed.NAME", because MLflow changes no parameters.
  base::Status begin(const std::vector<HyperParameter>& parameters, const MlflowTexts& tags);
  // Adds a row. `wall`: seconds since 1970.
  base::Status metrics(const std::vector<std::pair<std::string, double>>& values, int64_t step, double wall);
  // `status`: FINISHED, FAILED, KILLED, or "" for none. Waits until everything has arrived, at most `seconds`
  // (and one more for a request that is on its way). Warns of the lines that are left, and returns their
  // number.
  base::Result<int64_t> end(const std::string& status, double seconds);

 private:
  enum class After { kNothing, kSent, kFailed };  // the result of the last try
  MlflowRun(MlflowOptions options, std::unique_ptr<MlflowSpool> spool);
  void start();
  base::Status add(nlohmann::json line);
  base::Status add_texts(const char* kind, const MlflowTexts& texts);
  void work();
  bool pause(After after, double seconds);
  // Returns false if there is nothing to send.
  base::Result<bool> send_some();
  base::Status find_run();
  base::Status refused(const Error& error, std::size_t lines);
  void tell(const Error& error);

  const MlflowOptions options_;
  const std::unique_ptr<MlflowSpool> spool_;
  std::atomic<bool> cancelled_{false};
  // The members that only the thread uses.
  MlflowServer server_;
  std::size_t max_lines_;  // of the next request: fewer after a refusal, until the refused line is found
  bool run_known_ = false;
  std::optional<Code> told_;  // the error that the last warning reported
  int64_t refused_ = 0;       // lines
  std::mutex mutex_;
  std::condition_variable wake_, over_;
  bool more_ = false, ending_ = false, is_over_ = false;
  std::thread thread_;
};

// Sends the rows that a log folder (also one in a bucket) still has for MLflow, for at most `seconds`.
// Returns the number of lines that are left. Fails with kNotFound for a folder without a run of MLflow.
base::Result<int64_t> send_to_mlflow(const std::string& folder, const std::string& uri, double seconds);

}  // namespace sluice::train
