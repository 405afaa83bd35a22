#include "sluice/train/report/run_log.h"

#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/process.h"
#include "sluice/session/files/remote_checkpoint.h"

namespace sluice::train {

RunLog::RunLog(const RunSetup& given, const RunState& state)
    : given_(given),
      state_(state),
      console_(!given.session.is_leader() || given.options.quiet ? ConsoleMode::kSilent
               : given.options.json                              ? ConsoleMode::kJson
                                                                 : ConsoleMode::kText) {
  if (all_workers_log() && !given.session.is_leader() && !given.options.quiet)
    own_console_.emplace(given.options.json ? ConsoleMode::kJson : ConsoleMode::kText);
}

void RunLog::open(const std::string& folder, std::mutex* rows) {
  if (!given_.session.is_leader()) return;
  const TrainOptions& options = given_.options;
  const sessions::Due& due = state_.progress.due;
  metrics_ = base::value_or_throw(
      MetricsWriter::create(folder, state_.progress.step,
                            {.test = due.test && given_.test != nullptr, .epoch_end = due.within_epoch}));
  metrics_->hold(rows);
  const int64_t batch = given_.train.rows() * given_.session.shares() * options.accumulate;
  const auto parameters = hyper_parameters(options, batch);
  base::value_or_throw(metrics_->begin(parameters, options.config));
  // `sluice estimate` only looks at the first steps.
  if (!options.mlflow.empty() && !base::environment("SLUICE_AHEAD")) open_mlflow(parameters);
}

void RunLog::open_mlflow(const std::vector<HyperParameter>& parameters) {
  const TrainOptions& options = given_.options;
  const std::string logdir = sessions::without_slash(options.logdir);
  const MlflowOptions mlflow{.uri = options.mlflow,
                             .experiment = options.mlflow_experiment,
                             .run_name = logdir.substr(logdir.rfind('/') + 1),
                             .authorization = mlflow_authorization(),
                             .shown_folder = options.logdir};
  const std::optional<int64_t> last =
      options.resume.empty() ? std::nullopt : std::optional(state_.progress.step);
  mlflow_ = base::value_or_throw(MlflowRun::open(mlflow, metrics_->folder(), last));
  MlflowTexts tags = {{"mlflow.source.name", "sluice train"},
                      {"sluice.version", SLUICE_VERSION},
                      {"sluice.logdir", options.logdir},
                      {"sluice.host", base::host_name()}};
  if (const auto user = base::environment("USER")) tags.emplace_back("mlflow.user", *user);
  base::value_or_throw(mlflow_->begin(parameters, tags));
  metrics_->also_to(
      [this](const auto& values, int64_t step, double wall) { return mlflow_->metrics(values, step, wall); });
}

void RunLog::write(const Measurement& row) {
  if (metrics_) base::value_or_throw(metrics_->write(row));
  json(json_text(row, base::wall_seconds()));
}

void RunLog::text(const std::string& tag, const std::string& markdown) {
  if (metrics_)
    base::value_or_throw(metrics_->events().text(tag, markdown, state_.progress.step, base::wall_seconds()));
}

void RunLog::end_tables() {
  if (metrics_) base::value_or_throw(metrics_->end());
}

void RunLog::end_mlflow(const char* status, double seconds) {
  if (!mlflow_) return;
  base::value_or_throw(mlflow_->end(status, seconds));
  mlflow_.reset();
  metrics_->also_to({});
}

}  // namespace sluice::train
