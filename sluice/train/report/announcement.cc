#include "sluice/train/report/announcement.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/train/report/model_summary.h"

namespace sluice::train {
namespace announcement_detail {

void announce_model(const RunSetup& given, const RunPlan& plan, RunLog& log) {
  const TrainOptions& options = given.options;
  int64_t weights = 0;
  for (const auto& parameter : given.module.parameters()) weights += parameter.numel();
  log.line(base::str(
      "model ", options.model.empty() ? given.module.name() : options.model, ": ", weights, " weights on ",
      given.session.device(), ", ", name_of(options.precision), "; train ", given.train.samples(),
      " samples, test ", given.test ? given.test->samples() : 0, "; ", text_of(plan.length), ", ",
      base::counted(options.epochs, "epoch"),
      options.max_steps > 0 ? base::str(", but ", base::counted(options.max_steps, "step"), " at most") : "",
      options.max_tokens > 0 ? base::str(" (", base::grouped(options.max_tokens), " tokens)") : "", "; ",
      given.train.describe_remainder()));
}

void announce_filters(const RunSetup& given, RunLog& log) {
  const auto part = [](const char* flag, const Input& set) {
    return base::str(flag, " leaves out ", set.left_out(), " of ", set.samples() + set.left_out(),
                     " samples");
  };
  std::vector<std::string> parts;
  nlohmann::json event = {{"event", "filter"}, {"left_out", given.train.left_out()}};
  if (!given.options.where.empty()) parts.push_back(part("--where", given.train));
  if (!given.options.test_where.empty() && given.test != nullptr) {
    parts.push_back(part("--test-where", *given.test));
    event["test_left_out"] = given.test->left_out();
  }
  log.line(base::join(parts, "; "));
  log.json(event.dump());
}

// Warns of epochs that have fewer steps, or smaller ones, than the options say.
void warn_of_short_epochs(const RunSetup& given, const RunPlan& plan) {
  if (!given.session.is_leader()) return;
  if (!plan.length.empty.empty()) {
    std::vector<std::string> numbers;
    for (const int64_t epoch : plan.length.empty) numbers.push_back(std::to_string(epoch + 1));
    base::warn(numbers.size() == 1 ? "epoch " : "epochs ", base::join(numbers, ", "),
               numbers.size() == 1 ? " has no step" : " have no step",
               ": what their order packs fills no batch; choose a smaller --batch-size");
  }
  if (given.train.batches() < given.options.accumulate)
    base::warn("an epoch has ", base::counted(given.train.batches(), "batch"), ", less than --accumulate ",
               given.options.accumulate, ": it is one update of them");
}

}  // namespace announcement_detail

void announce(const RunSetup& given, const RunPlan& plan, RunLog& log) {
  const Session& session = given.session;
  const TrainOptions& options = given.options;
  const bool is_xla = session.backend().is_xla();
  log.line(base::str(is_xla ? describe_device() : "LibTorch's own CPU", "; ",
                     base::counted(session.replicas(), "replica"), " in ",
                     base::counted(session.processes(), "process"),
                     session.peak_text().empty() ? "" : "; peak of a replica ", session.peak_text()));
  const int64_t rows = given.train.rows();
  const char* const share = session.backend().spans_processes() ? "part" : "replica";
  log.line(base::str("batch ", rows, " × ", base::counted(session.shares(), share), " × accumulate ",
                     options.accumulate, " = ", rows * session.shares() * options.accumulate));
  announcement_detail::announce_model(given, plan, log);
  announcement_detail::warn_of_short_epochs(given, plan);
  if (options.summary > 0 && !is_xla) log.line(model_summary(given.module, options.summary));
  if (!options.where.empty() || !options.test_where.empty())
    announcement_detail::announce_filters(given, log);
}

void announce_layers(const RunSetup& given, const stablehlo::Work& work, RunLog& log) {
  log.line(model_summary(given.module, given.options.summary, work));
  log.line(base::str("The first step needs about ", base::memory_text(static_cast<uint64_t>(work.peak_bytes)),
                     " on a replica: ", base::memory_text(static_cast<uint64_t>(work.argument_bytes)),
                     " for weights, the optimizer's states and the batch, the rest for values that ",
                     "its layers make. An estimate without what the compiler fuses or computes again."));
}

}  // namespace sluice::train
