#include "sluice/train/report/step_report.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/metrics/names.h"

namespace sluice::train {

void StepReport::report(const NamedValues& values, double lr, sessions::RateTracker* rate) {
  Session& session = given_.session;
  const sessions::Progress& progress = state_.progress;
  const bool log = rate != nullptr;
  const sessions::LogLine line{.device = session.device(),
                               .process = session.process_index(),
                               .epoch = progress.epoch + 1,
                               .step = progress.batch,
                               .rates = log ? rate->take(base::monotonic_seconds()) : sessions::Rates{},
                               .time = base::local_time()};
  std::vector<torch::Tensor> tensors;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : values) {
    names.push_back(name);
    tensors.push_back(tensor);
  }
  // The rates of the steps up to this one; set when the line appears.
  const auto rates = std::make_shared<std::optional<StepRates>>();
  const auto complete = [this, rates, log, names, line,
                         until = session.steps()](const std::vector<torch::Tensor>& host) {
    sessions::LogLine whole = line;
    for (size_t i = 0; i < names.size(); ++i)
      whole.values.emplace_back(names[i], host[i].to(torch::kDouble).mean().item<double>());
    if (!log) return whole;
    if (!*rates) *rates = given_.session.step_rates(until);
    whole.steps = **rates;
    return whole;
  };
  session.after_step(tensors, [=, this, alive = std::weak_ptr<char>(alive_),
                               step = progress.step](const std::vector<torch::Tensor>& host) {
    if (!alive.expired()) arrived(complete(host), step, lr, log);
  });
  if (log && log_.all_workers_log())
    session.after_step(
        tensors,
        [=, this, alive = std::weak_ptr<char>(alive_),
         step = progress.step](const std::vector<torch::Tensor>& host) {
          if (!alive.expired()) arrived_here(complete(host), step, lr);
        },
        Over::kLocalReplicas);
}

void StepReport::check_finite(const sessions::LogLine& line, int64_t step, double lr) {
  if (given_.options.on_nan == OnNan::kSkip) return;
  for (const auto& [name, value] : line.values) {
    // If the step returns no loss itself, any of its values may be one.
    if (std::isfinite(value) || (given_.steps.training_step && name != "loss")) continue;
    throw_error(Code::kOutOfRange,
                base::str("the ", name, " is ", value, " at step ", step, " (epoch ", line.epoch, ", batch ",
                          line.step, "). Try a smaller --lr (", lr, " now), --warmup-epochs or --clip-norm, ",
                          "or --on-nan skip. ", checkpoints_.last_good()));
  }
}

void StepReport::arrived(sessions::LogLine line, int64_t step, double lr, bool log) {
  if (!line.values.empty()) last_loss_ = line.values.front().second;
  check_finite(line, step, lr);
  if (!log) return;
  const Measurement row = measurement(line, step, lr);
  for (auto& [name, value] : line.values) name = metrics::label(name);
  if (!log_.all_workers_log()) log_.line(text_of(line));
  log_.write(row);
}

void StepReport::arrived_here(sessions::LogLine line, int64_t step, double lr) {
  Measurement row = measurement(line, step, lr);
  for (auto& [name, value] : line.values) name = metrics::label(name);
  log_.worker_console().line(text_of(line));
  row.process = line.process;
  row.global_rate = line.rates.global_rate * given_.session.local_replicas();
  row.examples_per_second = line.rates.rate * given_.session.local_replicas();
  if (row.steps.tokens_per_second) *row.steps.tokens_per_second /= given_.session.processes();
  log_.worker_console().json(json_text(row, base::wall_seconds()));
}

Measurement StepReport::measurement(const sessions::LogLine& line, int64_t step, double lr) const {
  Measurement row;
  row.split = "train";
  row.epoch = line.epoch;
  row.step = step;
  for (const auto& [name, value] : line.values) {
    if (name == "loss")
      row.loss = value;
    else
      row.others.push_back({name, metrics::label(name), value});
  }
  row.rate = line.rates.rate;
  // All replicas do the same steps with equally many rows, so one process's rate gives the rate of all.
  row.global_rate = line.rates.global_rate * given_.session.shares();
  row.examples_per_second = line.rates.rate * given_.session.shares();
  row.learning_rate = lr;
  row.steps = line.steps;
  return row;
}

}  // namespace sluice::train
