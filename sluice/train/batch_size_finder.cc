#include "sluice/train/batch_size_finder.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/error.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/session/log_line.h"
#include "sluice/train/callback.h"
#include "sluice/train/train_task.h"

namespace sluice::train {
namespace batch_size_finder_detail {

constexpr int64_t kFirstSteps = 2;  // these compile the step and fill the prefetch buffers
constexpr int64_t kSteps = kFirstSteps + 10;

// For a CPU, whose plugin does not report its memory: the process's peak size, and the machine's memory.
void add_host_memory(BatchSizeTrial& trial) {
  rusage usage{};
  struct sysinfo machine {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0 || ::sysinfo(&machine) != 0) return;
  trial.memory = usage.ru_maxrss * 1024;
  trial.memory_limit = static_cast<int64_t>(machine.totalram) * static_cast<int64_t>(machine.mem_unit);
}

// All processes decide by the same numbers: process 0's rate, and the memory of the fullest device.
void share(Session& session, BatchSizeTrial& trial) {
  const nlohmann::json own = {trial.examples_per_second, trial.memory.value_or(0),
                              trial.memory_limit.value_or(0)};
  const auto all = session.gather_on_host("trial of a batch size", own.dump());
  double fullest = -1;
  for (const std::string& text : all) {
    const auto numbers = base::parse_json(text);
    const auto memory = numbers.at(1).get<int64_t>(), limit = numbers.at(2).get<int64_t>();
    if (&text == &all.front()) trial.examples_per_second = numbers.at(0).get<double>();
    const double part = limit > 0 ? static_cast<double>(memory) / static_cast<double>(limit) : 0;
    if (part <= fullest) continue;
    fullest = part;
    trial.memory = memory > 0 ? std::optional(memory) : std::nullopt;
    trial.memory_limit = limit > 0 ? std::optional(limit) : std::nullopt;
  }
}

// Measures the steps of a trial.
class Measure : public Callback {
 public:
  Measure(BatchSizeTrial& trial, const TrainOptions& options) : trial_(trial), options_(options) {}
  std::string name() const override { return "trial of a batch size"; }
  void after_step(Run& run) override {
    ++steps_;
    if (steps_ != kFirstSteps && steps_ != kSteps) return;
    Session& session = run.session();
    session.barrier();
    if (steps_ == kFirstSteps) {
      clock_ = base::Stopwatch();
      return;
    }
    const int64_t batches = (kSteps - kFirstSteps) * options_.accumulate * session.replicas();
    trial_.examples_per_second = static_cast<double>(batches * trial_.batch_size) / clock_.seconds();
    const StepRates rates = session.step_rates();
    trial_.memory = rates.memory_peak;
    trial_.memory_limit = rates.memory_limit;
    if (!trial_.memory) add_host_memory(trial_);
    share(session, trial_);
    leads_ = session.is_leader();
  }

  bool leads() const { return leads_; }

 private:
  BatchSizeTrial& trial_;
  const TrainOptions& options_;
  bool leads_ = false;
  int64_t steps_ = 0;
  base::Stopwatch clock_;
};

std::string in_words(int64_t bytes) { return base::memory_text(static_cast<uint64_t>(bytes)); }

// Predicts the memory for twice the last trial's size, if it grows for each sample as it did in the last
// trial.
std::optional<double> memory_of_next(const std::vector<BatchSizeTrial>& trials) {
  if (trials.size() < 2) return std::nullopt;
  const BatchSizeTrial &last = trials.back(), &before = trials[trials.size() - 2];
  if (!last.memory || !before.memory || !last.memory_limit) return std::nullopt;
  const auto grown = static_cast<double>(*last.memory - *before.memory);
  return static_cast<double>(*last.memory) + grown * static_cast<double>(last.batch_size) /
                                                 static_cast<double>(last.batch_size - before.batch_size);
}

void print(const BatchSizeTrial& trial, bool json) {
  if (json) {
    const auto number = [](const auto& value) { return value ? nlohmann::json(*value) : nlohmann::json(); };
    const nlohmann::json row = {{"event", "batch_size"},
                                {"batch_size", trial.batch_size},
                                {"examples_per_second", trial.examples_per_second},
                                {"memory", number(trial.memory)},
                                {"memory_limit", number(trial.memory_limit)}};
    std::printf("%s\n", row.dump().c_str());
  } else {
    std::string text = base::str("BatchSize=", trial.batch_size,
                                 ", GlobalRate=", sessions::fixed(trial.examples_per_second, 2));
    if (trial.memory) text += ", Memory=" + in_words(*trial.memory);
    if (trial.memory && trial.memory_limit) text += " of " + in_words(*trial.memory_limit);
    std::printf("%s\n", text.c_str());
  }
  std::fflush(stdout);
}

void print(const BatchSizes& found, bool json) {
  if (json) {
    const nlohmann::json row = {
        {"event", "batch_sizes"}, {"suggestion", found.suggestion}, {"end", found.end}};
    std::printf("%s\n", row.dump().c_str());
  } else {
    std::printf("The sweep ended: %s. Suggestion: --batch-size %ld\n", found.end.c_str(), found.suggestion);
  }
}

double fastest(const std::vector<BatchSizeTrial>& trials, size_t without_last = 0) {
  double rate = 0;
  for (size_t i = 0; i + without_last < trials.size(); ++i)
    rate = std::max(rate, trials[i].examples_per_second);
  return rate;
}

// Thrown when a trial ended early, with this exit status.
struct Stopped {
  int exit_status;
};

// `leads`: set after a trial; whether this process prints the results.
BatchSizeTrial run_trial(const TrainOptions& options, int64_t batch_size, bool& leads) {
  TrainOptions of_trial = options;
  of_trial.batch_size = batch_size;
  of_trial.quiet = true;
  of_trial.json = false;
  of_trial.fast_dev_run = kSteps;
  of_trial.test.clear();
  of_trial.test_size = 0;
  of_trial.resume = {};
  of_trial.metrics.clear();
  BatchSizeTrial trial;
  trial.batch_size = batch_size;
  const auto measure = std::make_shared<Measure>(trial, options);
  const TrainResult result = train_task(of_trial, {measure});
  if (result.exit_status != kDone) throw Stopped{result.exit_status};
  if (trial.examples_per_second == 0)
    throw_error(Code::kOutOfRange, base::str("the training data has fewer than ", kSteps, " batches of ",
                                             batch_size, " for each replica"));
  leads = measure->leads();
  if (leads) print(trial, options.json);
  return trial;
}

}  // namespace batch_size_finder_detail

BatchSizes find_batch_sizes(const BatchSizeSweep& sweep,
                            const std::function<BatchSizeTrial(int64_t)>& attempt) {
  namespace detail = batch_size_finder_detail;
  if (sweep.first < 1 || sweep.largest < sweep.first || !(sweep.gain > 0 && sweep.gain < 1))
    throw_error(
        Code::kInvalidArgument,
        base::str("a sweep of batch sizes needs 1 <= first <= largest and a gain between 0 and 1, not ",
                  sweep.first, ", ", sweep.largest, " and ", sweep.gain));
  BatchSizes found;
  int64_t size = sweep.first;
  while (found.end.empty()) {
    try {
      found.trials.push_back(attempt(size));
    } catch (const Error& error) {
      const bool ends = error.code() == Code::kResourceExhausted || error.code() == Code::kOutOfRange;
      if (!ends || found.trials.empty()) throw;
      found.end = base::str(size, " do not go: ", error.what());
      break;
    }
    const BatchSizeTrial& last = found.trials.back();
    const size_t count = found.trials.size();
    const auto next = detail::memory_of_next(found.trials);
    if (count > 2 && detail::fastest(found.trials) <
                         (1 + sweep.gain) * detail::fastest(found.trials, /*without_last=*/2)) {
      found.end = "larger ones are no faster";
    } else if (next && *next > static_cast<double>(*last.memory_limit)) {
      found.end = base::str(2 * size, " would need about ", detail::in_words(static_cast<int64_t>(*next)),
                            " of ", detail::in_words(*last.memory_limit));
    } else if (size > sweep.largest / 2) {
      found.end = base::str("no more than ", sweep.largest, " were asked for");
    }
    size *= 2;
  }
  for (const BatchSizeTrial& trial : found.trials)
    if (found.suggestion == 0 && trial.examples_per_second * (1 + sweep.gain) > detail::fastest(found.trials))
      found.suggestion = trial.batch_size;
  return found;
}

TrainResult sweep_batch_sizes(const TrainOptions& options) {
  namespace detail = batch_size_finder_detail;
  bool leads = false;
  try {
    const BatchSizes found = find_batch_sizes({.first = options.batch_size}, [&](int64_t batch_size) {
      return detail::run_trial(options, batch_size, leads);
    });
    if (leads) detail::print(found, options.json);
    return {};
  } catch (const detail::Stopped& stopped) {
    TrainResult result;
    result.exit_status = stopped.exit_status;
    return result;
  }
}

}  // namespace sluice::train
