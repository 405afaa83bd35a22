// A client of an MLflow tracking server, with its REST API, version 2.0.
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

// The limits of one request and of its texts.
inline constexpr std::size_t kMlflowMetrics = 1000, kMlflowParameters = 100, kMlflowTags = 100;
inline constexpr std::size_t kMlflowItems = 1000, kMlflowBytes = 1'000'000;
inline constexpr std::size_t kMlflowNameBytes = 250, kMlflowValueBytes = 6000, kMlflowTagBytes = 5000;

// Returns the name in a form that MLflow accepts: letters, digits, _ - . : / and spaces, no path with empty
// parts, "." or "..", at most 250 bytes. Anything that does not fit becomes "_".
std::string mlflow_name(std::string_view name);
// Returns at most `most` bytes of UTF-8, cut between characters.
std::string cut_text(std::string_view text, std::size_t most);

// Fails with kInvalidArgument if `uri` is not http(s)://host[:port][/path], or has a user name or a password
// in it.
base::Status check_mlflow_uri(const std::string& uri);
// Returns the value of the header Authorization: from MLFLOW_TRACKING_TOKEN, else from
// MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD; "" without them.
std::string mlflow_authorization();
// Fails with kPermissionDenied if the secret would be sent unencrypted: by http to another machine.
base::Status check_mlflow_secret(const std::string& uri, const std::string& authorization);

using MlflowTexts = std::vector<std::pair<std::string, std::string>>;

struct MlflowLimits {
  double connect = 5, request = 20;  // seconds
};

// Each call is one try (experiment() makes up to three requests). Errors: kUnavailable for problems that may
// pass, kPermissionDenied for 401 and 403, kNotFound for 404, kInvalidArgument for requests that the server
// refuses, kCancelled. Messages quote the server. Threads: one at a time; `cancelled` may be set from any.
class MlflowServer {
 public:
  // `uri`: must pass check_mlflow_uri(). `cancelled` must outlive the server.
  MlflowServer(const std::string& uri, std::string authorization, const std::atomic<bool>& cancelled,
               const MlflowLimits& limits = {});

  // Returns the id of the experiment of this name, which is created if it is missing.
  base::Result<std::string> experiment(const std::string& name);
  // Creates a run and returns its id. `began`: milliseconds since 1970.
  base::Result<std::string> create_run(const std::string& experiment, const std::string& name, int64_t began,
                                       const MlflowTexts& tags);
  // Returns the id of the run with this tag, or "".
  base::Result<std::string> find_run(const std::string& experiment, const std::string& tag,
                                     const std::string& value);
  // Fails with kNotFound if there is no such run, or it is deleted.
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
