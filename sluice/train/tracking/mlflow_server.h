// A tracking server of MLflow, asked over its REST API, version 2.0.
// https://mlflow.org/docs/latest/rest-api.html
#pragma once

#include <atomic>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/cloud/http.h"

namespace sluice::train {

// What one request may hold, and its texts.
inline constexpr std::size_t kMlflowMetrics = 1000, kMlflowParameters = 100, kMlflowTags = 100;
inline constexpr std::size_t kMlflowItems = 1000, kMlflowBytes = 1'000'000;
inline constexpr std::size_t kMlflowNameBytes = 250, kMlflowValueBytes = 6000, kMlflowTagBytes = 5000;

// The name as MLflow takes it: letters, digits, _ - . : / and spaces, no path with empty parts, "." or "..",
// at most 250 bytes. What does not fit becomes "_".
std::string mlflow_name(std::string_view name);
// At most `most` bytes of UTF-8, cut between characters.
std::string cut_text(std::string_view text, std::size_t most);

// kInvalidArgument for what is no http(s)://host[:port][/path], and for one with a name or a password in it.
base::Status check_mlflow_uri(const std::string& uri);
// The value of the header Authorization: of MLFLOW_TRACKING_TOKEN, else of MLFLOW_TRACKING_USERNAME and
// MLFLOW_TRACKING_PASSWORD; "" without them.
std::string mlflow_authorization();
// kPermissionDenied where that would go out unencrypted: by http to another machine.
base::Status check_mlflow_secret(const std::string& uri, const std::string& authorization);

using MlflowTexts = std::vector<std::pair<std::string, std::string>>;

struct MlflowLimits {
  double connect = 5, request = 20;  // seconds
};

// Each call is one try (get_or_create up to three requests). Errors: kUnavailable for what may pass,
// kPermissionDenied for 401 and 403, kNotFound for 404, kInvalidArgument for what the server refuses,
// kCancelled. Messages have the server's words. Threads: one at a time; `cancelled` may be set from any.
class MlflowServer {
 public:
  // `uri`: one that check_mlflow_uri() takes. `cancelled` must outlive the server.
  MlflowServer(const std::string& uri, std::string authorization, const std::atomic<bool>& cancelled,
               const MlflowLimits& limits = {});

  // The number of the experiment of this name, which is made when it is missing.
  base::Result<std::string> experiment(const std::string& name);
  // A new run's id. `began`: milliseconds since 1970.
  base::Result<std::string> create_run(const std::string& experiment, const std::string& name, int64_t began,
                                       const MlflowTexts& tags);
  // The id of the run with this tag, or "".
  base::Result<std::string> find_run(const std::string& experiment, const std::string& tag,
                                     const std::string& value);
  // kNotFound when there is no such run, or it is deleted.
  base::Status check_run(const std::string& run);
  // `batch`: the fields metrics, params and tags of runs/log-batch.
  base::Status log_batch(const std::string& run, const nlohmann::json& batch);
  // `status`: RUNNING, FINISHED, FAILED or KILLED. `at`: milliseconds since 1970.
  base::Status update_run(const std::string& run, const std::string& status, int64_t at);

 private:
  base::Result<nlohmann::json> ask(const std::string& method, const std::string& path,
                                   const std::string& query, const nlohmann::json& body);
  base::Result<nlohmann::json> post(const std::string& path, const nlohmann::json& body);
  cloud::Http http_;
  const std::string root_;  // …/api/2.0/mlflow/
  const std::string authorization_;
  const std::atomic<bool>& cancelled_;
  const MlflowLimits limits_;
};

}  // namespace sluice::train
