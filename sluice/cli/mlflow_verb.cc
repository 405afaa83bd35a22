// sluice mlflow
#include <cstdio>
#include <memory>

#include "sluice/base/clock.h"
#include "sluice/base/error.h"
#include "sluice/base/text/quantity.h"
#include "sluice/cli/verbs.h"
#include "sluice/train/tracking/mlflow_run.h"

namespace sluice::cli {

Verb mlflow_verb() {
  struct Arguments {
    std::string folder, uri, wait = "5m";
  };
  auto arguments = std::make_shared<Arguments>();
  return {.name = "mlflow",
          .help = "Send what a log folder still has for MLflow",
          .footer =
              "Use it after a training with --mlflow whose server was away. A training that is still "
              "running, or continues with --resume, sends the rows itself. Exit status: 0 all rows are "
              "there, 1 some are left.",
          .add_flags =
              [arguments](CLI::App& app) {
                app.add_option("LOGDIR", arguments->folder,
                               "The log folder of the run; also gs://…, s3://… and az://…")
                    ->required();
                app.add_option("--mlflow", arguments->uri,
                               "The server, when it has another address now; empty: the run's own");
                app.add_option("--wait", arguments->wait, "How long, at most, such as 30s or 5m");
              },
          .run =
              [arguments] {
                const double seconds = value_or_usage(base::parse_span(arguments->wait, "--wait"));
                const auto left =
                    base::value_or_throw(train::send_to_mlflow(arguments->folder, arguments->uri, seconds));
                if (left == 0) std::printf("MLflow has all rows of %s\n", arguments->folder.c_str());
                return left == 0 ? 0 : 1;
              }};
}

}  // namespace sluice::cli
