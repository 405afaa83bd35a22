// One training as a run of MLflow. Nothing of it waits for the network: rows go to the log folder
// (mlflow_spool.h), and a thread sends what is there. While the server is away they stay; what is left when
// the training ends is sent by the next start of it with --resume, or by `sluice mlflow`.
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
  std::string shown_folder;   // the log folder, as messages name it
  MlflowLimits limits = {};
  double every = 1;     // seconds between two requests at least, so that many rows share one
  double longest = 30;  // seconds between two tries at most
};

// Threads: one at a time. Errors are those of the disk. Of the server's a warning tells, once until it takes
// rows again.
class MlflowRun {
 public:
  // Without `last_step` a new run, and what the folder still has for an earlier one goes; with it the
  // folder's run goes on after this step, or a new one begins where there is none.
  static base::Result<std::unique_ptr<MlflowRun>> open(const MlflowOptions& options,
                                                       const std::string& folder,
                                                       std::optional<int64_t> last_step);
  // Only sends what the folder still has. kNotFound for a folder without a run of MLflow. An empty `uri`
  // means the one that the run has been sent to.
  static base::Result<std::unique_ptr<MlflowRun>> reopen(MlflowOptions options, const std::string& folder);
  // Ends a run that began and has no end yet as FAILED, within 5 s.
  ~MlflowRun();
  MlflowRun(const MlflowRun&) = delete;
  MlflowRun& operator=(const MlflowRun&) = delete;

  // Before the first row: the thread begins. A parameter that the run has with another value becomes a tag
  // "resumed.NAME": MLflow changes no parameters.
  base::Status begin(const std::vector<HyperParameter>& parameters, const MlflowTexts& tags);
  // A row. `wall`: seconds since 1970.
  base::Status metrics(const std::vector<std::pair<std::string, double>>& values, int64_t step, double wall);
  // `status`: FINISHED, FAILED, KILLED, or "" for none. Waits until everything has arrived, at most so many
  // seconds (and one more for a request that is on its way). Warns of what is left, and gives its lines.
  base::Result<int64_t> end(const std::string& status, double seconds);

 private:
  enum class After { kNothing, kSent, kFailed };  // what the last try has done
  MlflowRun(MlflowOptions options, std::unique_ptr<MlflowSpool> spool);
  void start();
  base::Status add(nlohmann::json line);
  base::Status add_texts(const char* kind, const MlflowTexts& texts);
  void work();
  bool pause(After after, double seconds);
  // False: there is nothing to send.
  base::Result<bool> send_some();
  base::Status find_run();
  base::Status refused(const Error& error, std::size_t lines);
  void tell(const Error& error);

  const MlflowOptions options_;
  const std::unique_ptr<MlflowSpool> spool_;
  std::atomic<bool> cancelled_{false};
  // The thread's.
  MlflowServer server_;
  std::size_t max_lines_;  // of the next request: fewer after a refusal, until the line is found
  bool run_known_ = false;
  std::optional<Code> told_;  // the trouble that was warned of
  int64_t refused_ = 0;       // lines
  std::mutex mutex_;
  std::condition_variable wake_, over_;
  bool more_ = false, ending_ = false, is_over_ = false;
  std::thread thread_;
};

// Sends what a log folder, also one in a bucket, still has for MLflow, for at most so many seconds. Gives the
// lines that are left. kNotFound for a folder without a run of MLflow.
base::Result<int64_t> send_to_mlflow(const std::string& folder, const std::string& uri, double seconds);

}  // namespace sluice::train
