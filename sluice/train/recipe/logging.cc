#include "sluice/train/recipe/sections.h"

#include "sluice/base/environment.h"
#include "sluice/base/error.h"
#include "sluice/base/result.h"
#include "sluice/cloud/listen.h"
#include "sluice/train/recipe/choice.h"
#include "sluice/train/recipe/parsed.h"
#include "sluice/train/recipe/reasons.h"
#include "sluice/train/tracking/mlflow_server.h"

namespace sluice::train {
namespace recipe_logging_detail {

// The server of --mlflow without a value.
std::string tracking_uri() {
  const auto uri = base::environment("MLFLOW_TRACKING_URI");
  if (!uri)
    throw_error(Code::kInvalidArgument,
                "--mlflow without a value needs MLFLOW_TRACKING_URI; or give the server: --mlflow URI");
  return *uri;
}

void check_mlflow(const TrainOptions& o) {
  if (o.mlflow.empty()) return;
  base::value_or_throw(check_mlflow_uri(o.mlflow));
  base::value_or_throw(check_mlflow_secret(o.mlflow, mlflow_authorization()));
}

void check_experiment(const TrainOptions& o) {
  if (!o.mlflow.empty() && o.mlflow_experiment.empty())
    throw_error(Code::kInvalidArgument, "--mlflow-experiment is empty: expected the name of an experiment");
}

void check_port(const char* flag, const std::string& port) {
  if (!port.empty()) base::value_or_throw(cloud::parse_listen_address(port, flag));
}

}  // namespace recipe_logging_detail

// clang-format off
std::vector<base::Flag> logging_rows(TrainOptions& o) {
  using base::Flag;
  using namespace recipe_logging_detail;
  return {
      Flag{"Output", "--logdir", &o.logdir, "", "Write checkpoints, metrics and TensorBoard events into this folder; also gs://bucket/folder, s3://…, az://…"}
          .idle(in_dev_run(o)),
      Flag{"Output", "--log-steps", &o.log_steps, "steps", "Print a line every N steps of an epoch; a shorter epoch prints one at its end"}
          .at_least(1).idle(in_dev_run(o)),
      Flag{"Output", "--log-workers", choice("--log-workers", o.log_workers), "", "Choose who prints lines: leader prints the mean over all replicas, all: each process prints its own"},
      Flag{"Output", "--mlflow", base::OptionalText{&o.mlflow, tracking_uri}, "", "Log to this tracking server of MLflow, such as http://127.0.0.1:5000; without a value: to MLFLOW_TRACKING_URI"}
          .checked([&o] { check_mlflow(o); }).idle(in_dev_run(o)).idle(in_sweep(o)),
      Flag{"Output", "--mlflow-experiment", &o.mlflow_experiment, "", "Log to this experiment of MLflow; it is created when it is missing"}
          .checked([&o] { check_experiment(o); }).idle(in_dev_run(o)).idle(in_sweep(o))
          .idle(o.mlflow.empty(), {"--mlflow"}, "it requires --mlflow"),
      Flag{"Output", "--histograms", &o.histograms, "", "Write histograms of the weights for TensorBoard, at each test and checkpoint"}
          .idle(in_dev_run(o)).idle(in_sweep(o)),
      Flag{"Output", "--log-images", &o.log_images, "images", "Log N images of each test to TensorBoard, with labels and answers; 0: none"}
          .at_least(0).idle(without_images(o)).idle(in_sweep(o)).idle(without_test(o)),
      Flag{"Output", "--profile", parsed("--profile", o.profile), "steps", "Profile these steps of this start: 10:13 for 10, 11 and 12; into the log folder"}
          .idle(in_sweep(o)),
      Flag{"Output", "--summary", &o.summary, "levels", "Print a table of the model's modules down to N levels, with their parameters; 0: no table"}
          .at_least(0).idle(in_sweep(o)),
      Flag{"Output", "--report", &o.report, "", "Print what the device did at the end"}
          .idle(without_xla(o)),
      Flag{"Output", "--profiler-port", &o.profiler_port, "", "Take profiles for TensorBoard's capture button and sluice profile on this port of each process: 9012 of the loopback interface, 0.0.0.0:9012 of all; the second process of a host uses the next port; empty: none"}
          .checked([&o] { check_port("--profiler-port", o.profiler_port); }),
      Flag{"Output", "--status-port", &o.status_port, "", "Answer /status (JSON) and /metrics (Prometheus) on this port of the leader: 9100 of the loopback interface, 0.0.0.0:9100 of all; empty: none"}
          .checked([&o] { check_port("--status-port", o.status_port); }),
      Flag{"Output", "--json", &o.json, "", "Print JSON lines on standard output, everything else on standard error"},
  };
}
// clang-format on

}  // namespace sluice::train
