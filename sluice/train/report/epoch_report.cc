#include "sluice/train/report/epoch_report.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/thread.h"
#include "sluice/session/log_line.h"
#include "sluice/train/log/epoch_times.h"
#include "sluice/train/log/value_text.h"

namespace sluice::train {

void EpochReport::count_tokens_before() {
  if (given_.session.is_leader())
    for (int64_t epoch = 0; epoch < state_.progress.epoch; ++epoch) tokens_before_ += tokens_of(epoch);
}

void EpochReport::begin() {
  rate_.emplace(base::monotonic_seconds(), given_.session.local_replicas());
  means_.emplace(given_.session);
  began_ = given_.session.backend().times();
}

void EpochReport::leave_out(double begin, const sessions::DeviceTimes& before) {
  const sessions::DeviceTimes now = given_.session.backend().times();
  began_.busy += now.busy - before.busy;
  began_.compiling += now.compiling - before.compiling;
  began_.compiling_idle += now.compiling_idle - before.compiling_idle;
  rate_->leave_out(begin, base::monotonic_seconds());
}

void EpochReport::report_mixture() {
  const int64_t epoch = state_.progress.epoch + 1;
  const auto sources = given_.train.mixed(state_.data_epoch());
  if (sources.empty()) return;
  int64_t all = 0;
  for (const auto& source : sources) all += source.samples;
  std::vector<std::string> texts;
  nlohmann::json entries = nlohmann::json::array();
  for (const auto& [name, samples, passes] : sources) {
    const double share = 100.0 * static_cast<double>(samples) / static_cast<double>(all);
    texts.push_back(base::str(samples, " ", base::plural(samples, "sample"), " of ", name, " (",
                              sessions::fixed(share, 1), " %, ", sessions::fixed(passes, 2),
                              " passes so far)"));
    entries.push_back({{"name", name}, {"samples", samples}, {"passes", passes}});
  }
  log_.line(base::str("Epoch ", epoch, " took ", base::join(texts, ", "), "."));
  const nlohmann::json event = {{"event", "mixture"}, {"epoch", epoch}, {"sources", entries}};
  log_.json(base::with_json_texts(event).dump());
}

std::uint64_t EpochReport::tokens_of(int64_t epoch, int64_t updates) const {
  const std::vector<std::uint64_t> tokens = given_.train.tokens(given_.data_epoch(epoch));
  const auto end = updates < 0 ? tokens.end() : tokens.begin() + std::min(updates, std::ssize(tokens));
  return std::accumulate(tokens.begin(), end, std::uint64_t{0});
}

void EpochReport::report_tokens(bool whole, Measurement& row) {
  if (!given_.session.is_leader()) return;
  const sessions::Progress& progress = state_.progress;
  const std::uint64_t own = tokens_of(progress.epoch, progress.batch), all = tokens_before_ + own;
  if (all == 0) return;
  if (whole) tokens_before_ = all;
  log_.line(base::str("Epoch ", progress.epoch + 1, " took ",
                      base::counted(static_cast<int64_t>(own), "token"), ", the run ",
                      base::grouped(static_cast<int64_t>(all)), " so far."));
  row.others.push_back({"tokens_seen", "Tokens seen", static_cast<double>(all)});
}

void EpochReport::report_times(double wall) {
  Session& session = given_.session;
  const sessions::Backend& backend = session.backend();
  const int64_t epoch = state_.progress.epoch + 1, step = state_.progress.step;
  const double starving = opening_input_ + fed_.starving;
  const EpochTimes own{backend.is_xla() ? sessions::time_parts(wall, began_, backend.times(), starving)
                                        : sessions::eager_time_parts(wall, starving)};
  size_t process = 0;
  const EpochTimes times =
      base::value_or_throw(least_busy(session.gather_on_host("epoch times", text_of(own)), &process));
  std::string text = describe(times, epoch);
  if (session.processes() > 1) text += base::str(" So says process ", process, ", whose device waited most.");
  if (fed_.has_data && own.input_percent() >= 10) {
    text += base::str(" The narrowest stage of the data is ", fed_.narrowest, " (", data::summary(fed_.data),
                      "; upload ", std::lround(100 * fed_.uploading), " %). It would help: ",
                      data::advice(fed_.narrowest, fed_.data, static_cast<int>(base::available_processors())),
                      ".");
  }
  log_.line(text);
  if (log_.metrics() != nullptr) base::value_or_throw(log_.metrics()->write(times, epoch, step));
  log_.json(json_text(times, epoch, step, base::wall_seconds()));
}

EpochReport::Totals EpochReport::totals(double now) {
  Totals all;
  for (const std::string& one : given_.session.gather_on_host(
           "epoch", base::str(number_text(rate_->process_rate(now)), " ", rate_->examples()))) {
    std::istringstream in(one);
    double rate = 0;
    int64_t examples = 0;
    in >> rate >> examples;
    all.rate += rate;
    all.examples += examples;
  }
  return all;
}

Measurement EpochReport::end(bool whole) {
  const metrics::Values means = means_->compute();
  const double now = base::monotonic_seconds();
  const Totals all = totals(now);
  log_.worker_console().line(
      base::str("Epoch ", state_.progress.epoch + 1, " train end ", base::local_time(),
                ", Epoch Time=", base::duration_text_whole(now - rate_->start()),
                ", Replica Train Samples=", rate_->examples() / given_.session.local_replicas(),
                ", Reduced GlobalRate=", sessions::fixed(all.rate, 2)));
  report_times(now - rate_->start());
  report_mixture();
  Measurement row;
  row.split = "train";
  row.of_epoch = true;
  row.global_rate = all.rate;
  report_tokens(whole, row);
  put_into(row, means);
  if (given_.options.on_nan == OnNan::kSkip)
    row.others.push_back(
        {"skipped_updates", "Skipped updates", static_cast<double>(state_.progress.skipped)});
  return row;
}

}  // namespace sluice::train
