#include "sluice/train/report/outcome.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/session/log_line.h"
#include "sluice/train/log/value_text.h"

namespace sluice::train {
namespace outcome_detail {

std::string checkpoints_text(const LogFolder& folder, const CheckpointKeeper& checkpoints) {
  std::vector<std::string> all;
  for (const char* const name : {"last", "best"})
    if (checkpoints.has(name)) all.push_back(folder.shown(name));
  if (all.empty()) return "Checkpoints: none, no step was done";
  return base::str("Checkpoints: ", base::join(all, " and "));
}

// Prints the measured values, and where the files are.
void print(const RunSetup& given, const RunState& state, const LogFolder& folder,
           const CheckpointKeeper& checkpoints, const TrainResult& result, double seconds, RunLog& log) {
  const TrainOptions& options = given.options;
  const Monitor& monitor = given.steps.monitor;
  const sessions::Progress& progress = state.progress;
  log.line(base::str("Total Train Time: ", base::duration_text_whole(seconds)));
  if (given.test != nullptr && progress.best)
    log.line(
        base::str(monitor.higher_is_better ? "Max " : "Min ", text_of(monitor.name, *progress.best, ": ")));
  if (progress.skipped > 0) log.line(base::str("Skipped Updates: ", progress.skipped));
  log.line(base::str("Avg. Global Rate: ", sessions::fixed(result.examples_per_second, 2),
                     " examples per second"));
  if (options.fast_dev_run > 0)
    log.line(base::str("The trial of ", result.steps, " steps", given.test ? " and their test" : "",
                       " succeeded; no file was kept."));
  else
    log.line(base::str(checkpoints_text(folder, checkpoints), "; metrics: ", folder.shown("metrics.csv"),
                       "; curves: tensorboard --logdir ", options.logdir));
}

}  // namespace outcome_detail

TrainResult outcome(const RunSetup& given, const RunState& state, const metrics::Values& tested,
                    double loss) {
  TrainResult result;
  result.steps = state.progress.step;
  for (const metrics::Value& value : tested.numbers) {
    result.values.emplace_back(value.name, shown(value));
    if (value.name == "accuracy") result.accuracy = shown(value);
  }
  result.best = state.progress.best;
  if (given.steps.monitor.name == "accuracy") result.best_accuracy = state.progress.best.value_or(-1);
  result.loss = loss;
  return result;
}

void announce_outcome(const RunSetup& given, const RunState& state, const LogFolder& folder,
                      const CheckpointKeeper& checkpoints, TrainResult& result, RunLog& log) {
  const TrainOptions& options = given.options;
  const sessions::Progress& progress = state.progress;
  if (progress.rated_epochs > 0)
    result.examples_per_second = progress.global_rates / static_cast<double>(progress.rated_epochs);
  const double seconds = state.seconds();
  outcome_detail::print(given, state, folder, checkpoints, result, seconds, log);
  if (given.test != nullptr && options.target_accuracy > 0 &&
      result.best_accuracy < options.target_accuracy) {
    log.line(base::str("The target accuracy of ", sessions::fixed(options.target_accuracy, 2),
                       progress.best ? "% was missed." : "% was missed: no test has measured any."));
    result.exit_status = kTargetMissed;
  }
  nlohmann::json summary = {
      {"event", "end"},
      {"steps", result.steps},
      {"skipped_updates", progress.skipped},
      {"seconds", seconds},
      {"monitor", given.steps.monitor.name},
      {"best", progress.best ? nlohmann::json(*progress.best) : nlohmann::json()},
      {"examples_per_second", result.examples_per_second},
      {"checkpoint", checkpoints.has("last") ? nlohmann::json(folder.shown("last")) : nlohmann::json()},
      {"exit_status", result.exit_status}};
  log.json(base::with_json_texts(summary).dump());
}

}  // namespace sluice::train
