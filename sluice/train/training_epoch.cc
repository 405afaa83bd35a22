// One epoch of a training: its steps, its lines and rows, its test.
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/quantity.h"
#include "sluice/base/random.h"
#include "sluice/base/thread.h"
#include "sluice/metrics/names.h"
#include "sluice/session/log_line.h"
#include "sluice/train/confusion.h"
#include "sluice/train/optimizers.h"
#include "sluice/train/training.h"

namespace sluice::train {
namespace training_detail {

// The last two columns of a mixed batch (data/batch.h): the other label, and the share of the row's own one.
std::pair<torch::Tensor, torch::Tensor> mixed_in(const Batch& batch) {
  return {batch.columns[batch.columns.size() - 2], batch.columns.back()};
}

// As lines and tables show it: shares of the samples in percent, as accuracy is.
double shown(const metrics::Value& value) {
  return metrics::is_accuracy(value.name) ? metrics::percent(value) : value.number;
}

// ", Top5=93.10%, F1=0.71234": all but the numbers of single classes.
std::string line_of(const metrics::Values& values) {
  std::string line;
  for (const metrics::Value& value : values.numbers) {
    if (value.name.find('/') != std::string::npos) continue;
    const bool percent = metrics::is_accuracy(value.name);
    line += base::str(", ", metrics::label(value.name), "=", sessions::fixed(shown(value), percent ? 2 : 5),
                      percent ? "%" : "");
  }
  return line;
}

std::vector<Measurement::Named> named_values(const metrics::Values& values) {
  std::vector<Measurement::Named> named;
  for (const metrics::Value& value : values.numbers)
    named.push_back({value.name, metrics::label(value.name) + "/test", shown(value)});
  return named;
}

}  // namespace training_detail

Training::Halt Training::limit_reached() const {
  if (options_.max_steps > 0 && progress_.step >= options_.max_steps) return Halt::kMaxSteps;
  const bool late = options_.max_seconds > 0 && run_seconds() >= options_.max_seconds;
  return late ? Halt::kMaxTime : Halt::kNone;
}

Training::Halt Training::agreed_halt() {
  const bool late = limit_reached() == Halt::kMaxTime;
  const bool signal = SignalGuard::pending() != 0;
  if (!session_.agree_to_stop(signal || late)) return Halt::kNone;
  for (const std::string& reason : session_.gather_on_host("halt", signal ? "signal" : "time"))
    if (reason == "signal") return Halt::kSignal;
  return Halt::kMaxTime;
}

int64_t Training::epoch_steps() const {
  const int64_t steps = train_.batches(data_epoch()) / options_.accumulate;
  return options_.steps_per_epoch > 0 ? std::min(steps, options_.steps_per_epoch) : steps;
}

Training::Halt Training::train_epoch() {
  model_.train();
  rate_.emplace(base::monotonic_seconds(), session_.local_replicas());
  correct_ = torch::Tensor();
  epoch_began_ = session_.backend().times();
  const base::Stopwatch opening;
  auto feed = train_.feed(session_, data_epoch(), progress_.batch * options_.accumulate,
                          std::exchange(progress_.input, {}));  // of the epoch that was restored alone
  opening_input_ = opening.seconds();
  int64_t steps = epoch_steps();
  if (options_.max_steps > 0)
    steps = std::min(steps, progress_.batch + std::max<int64_t>(options_.max_steps - progress_.step, 0));
  Halt halt = Halt::kNone;
  while (progress_.batch < steps && halt == Halt::kNone) {
    set_learning_rate(*optimizer_, learning_rate_now());
    // Random numbers depend on the seed and the step alone: a resumed run draws the same ones.
    torch::manual_seed(base::key({options_.seed, static_cast<uint64_t>(progress_.step)}));
    torch::Tensor loss;
    for (int64_t i = 0; i < options_.accumulate; ++i) {
      auto batch = feed.next();
      if (!batch)
        throw_error(Code::kDataLoss, "the training set ended before its epoch: did its shards change?");
      std::optional<Accumulate> more;
      if (i + 1 < options_.accumulate) more.emplace(session_);
      loss = train_batch(*batch);
      rate_->add(batch->count);
      session_.step(*optimizer_, {.clip_norm = options_.clip_norm, .clip_value = options_.clip_value});
    }
    halt = agreed_halt();
    after_update(loss, steps, halt != Halt::kNone);
  }
  fed_ = feed.statistics();
  return halt == Halt::kNone && limit_reached() == Halt::kMaxSteps ? Halt::kMaxSteps : halt;
}

// The sources of a mixture in this epoch.
void Training::report_mixture() {
  const auto sources = train_.mixed(data_epoch());
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
  console_.line(base::str("Epoch ", progress_.epoch + 1, " took ", base::join(texts, ", "), "."));
  const nlohmann::json event = {{"event", "mixture"}, {"epoch", progress_.epoch + 1}, {"sources", entries}};
  console_.json(event.dump());
}

void Training::report_times(double wall) {
  const sessions::Backend& backend = session_.backend();
  const double starving = opening_input_ + fed_.starving;
  const EpochTimes own{backend.is_xla() ? sessions::time_parts(wall, epoch_began_, backend.times(), starving)
                                        : sessions::eager_time_parts(wall, starving)};
  size_t process = 0;
  const EpochTimes times =
      base::value_or_throw(least_busy(session_.gather_on_host("epoch times", text_of(own)), &process));
  std::string text = describe(times, progress_.epoch + 1);
  if (session_.processes() > 1)
    text += base::str(" So says process ", process, ", whose device waited most.");
  if (fed_.has_data && own.input_percent() >= 10) {
    text += base::str(" The narrowest stage of the data is ", fed_.narrowest, " (", data::summary(fed_.data),
                      "; upload ", std::lround(100 * fed_.uploading), " %). It would help: ",
                      data::advice(fed_.narrowest, fed_.data, static_cast<int>(base::available_processors())),
                      ".");
  }
  console_.line(text);
  if (session_.is_leader()) base::value_or_throw(metrics_->write(times, progress_.epoch + 1, progress_.step));
  console_.json(json_text(times, progress_.epoch + 1, progress_.step, base::wall_seconds()));
}

torch::Tensor Training::batch_loss(const Batch& batch) {
  const bool by_row = is_mixed() || batch.mask.defined();
  auto cross_entropy =
      torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(options_.label_smoothing);
  if (by_row) cross_entropy.reduction(torch::kNone);
  const torch::Tensor output = forward_(batch.image);
  count_correct(output, batch);
  torch::Tensor loss = torch::nn::functional::cross_entropy(output, batch.label, cross_entropy);
  if (is_mixed()) {
    const auto [other, own] = training_detail::mixed_in(batch);
    loss = own * loss + (1 - own) * torch::nn::functional::cross_entropy(output, other, cross_entropy);
  }
  if (!by_row) return loss;
  if (!batch.mask.defined()) return loss.mean();
  // Padding counts for nothing: the mean over the replicas is that over all samples of the batch.
  const torch::Tensor samples = batch.mask.to(loss.scalar_type());
  return (loss * samples).sum() / samples.sum().clamp_min(1) * batch.weight;
}

torch::Tensor Training::train_batch(Batch& batch) {
  torch::Tensor loss;
  {
    std::optional<Autocast> autocast;
    if (options_.precision == Precision::kBf16) autocast.emplace(session_.device());
    loss = batch_loss(batch);
  }
  if (options_.accumulate > 1)
    (loss / static_cast<double>(options_.accumulate)).backward();
  else
    loss.backward();
  return loss.detach();
}

void Training::count_correct(const torch::Tensor& output, const Batch& batch) {
  if (output.dim() != 2 || batch.label.dim() != 1 || batch.label.scalar_type() != torch::kLong) return;
  torch::NoGradGuard no_grad;
  torch::Tensor label = batch.label;
  if (is_mixed()) {
    const auto [other, own] = training_detail::mixed_in(batch);
    label = torch::where(own.ge(0.5), label, other);
  }
  torch::Tensor right = output.detach().argmax(1).eq(label);
  if (batch.mask.defined()) right = right.logical_and(batch.mask);
  if (!correct_.defined()) {
    // Uploaded, not recorded as a constant: so the first step runs the program of all others.
    const std::vector<torch::Tensor> zeros(static_cast<size_t>(session_.local_replicas()),
                                           torch::zeros({1}, torch::kLong));
    correct_ = session_.upload(zeros);
  }
  correct_.add_(right.to(torch::kLong).sum());
}

void Training::after_update(const torch::Tensor& loss, int64_t steps, bool stop) {
  const double lr = learning_rate_now();
  ++progress_.step;
  ++progress_.batch;
  const bool last = progress_.batch == steps;
  // Counted within the epoch: the lines and checkpoints of all epochs are at the same places.
  const bool log = progress_.batch % options_.log_steps == 0 || (last && steps < options_.log_steps);
  const bool save_now = options_.save_steps > 0 && progress_.batch % options_.save_steps == 0 && !last;
  console_.progress(base::str("Epoch ", progress_.epoch + 1), progress_.batch, steps_per_epoch_,
                    base::str("Loss=", sessions::fixed(last_loss_, 5)));
  if (options_.check_replicas > 0 && progress_.step % options_.check_replicas == 0)
    session_.check_replicas(model_);
  if (!log && !last && !save_now && !stop) return;
  const sessions::LogLine line{.device = session_.device(),
                               .process = session_.process_index(),
                               .epoch = progress_.epoch + 1,
                               .step = progress_.batch,
                               .rates = log ? rate_->take(base::monotonic_seconds()) : sessions::Rates{},
                               .time = base::local_time()};
  // Of the steps up to this one, when the line appears.
  const auto rates = std::make_shared<std::optional<StepRates>>();
  const auto with_rates = [this, rates, until = session_.steps()](sessions::LogLine line) {
    if (!*rates) *rates = session_.step_rates(until);
    line.steps = **rates;
    return line;
  };
  const auto mean = [](const torch::Tensor& value) { return value.to(torch::kDouble).mean().item<double>(); };
  session_.after_step({loss}, [=, this, alive = std::weak_ptr<char>(alive_),
                               step = progress_.step](const std::vector<torch::Tensor>& values) {
    if (!alive.expired()) report(mean(values[0]), log ? with_rates(line) : line, step, lr, log);
  });
  if (log && all_workers_log())
    session_.after_step(
        {loss},
        [=, this, alive = std::weak_ptr<char>(alive_),
         step = progress_.step](const std::vector<torch::Tensor>& values) {
          if (!alive.expired()) report_own(mean(values[0]), with_rates(line), step, lr);
        },
        Over::kLocalReplicas);
  if (save_now) {
    session_.sync_buffers(model_);
    session_.finish();  // the loss is checked before its weights replace a good checkpoint
    save(false);
  }
}

void Training::report(double loss, sessions::LogLine line, int64_t step, double lr, bool log) {
  last_loss_ = loss;
  if (!std::isfinite(loss)) {
    const std::string last = sessions::find_checkpoint(folder("last"));
    throw_error(Code::kOutOfRange,
                base::str("the loss is ", loss, " at step ", step, " (epoch ", line.epoch, ", batch ",
                          line.step, "). Try a smaller --lr (", lr, " now), --warmup-epochs or --clip-norm. ",
                          last.empty() ? std::string("There is no checkpoint yet.")
                                       : base::str("The last good checkpoint is ",
                                                   remote_ ? shown("last") : last, ".")));
  }
  if (!log) return;
  line.values = {{"Loss", loss}};
  if (!all_workers_log()) console_.line(text_of(line));
  write(measurement(line, step, lr));
}

// The line of this process alone.
void Training::report_own(double loss, sessions::LogLine line, int64_t step, double lr) {
  line.values = {{"Loss", loss}};
  worker_console().line(text_of(line));
  Measurement row = measurement(line, step, lr);
  row.process = line.process;
  row.global_rate = line.rates.global_rate * session_.local_replicas();
  row.examples_per_second = line.rates.rate * session_.local_replicas();
  if (row.steps.tokens_per_second) *row.steps.tokens_per_second /= session_.processes();
  worker_console().json(json_text(row, base::wall_seconds()));
}

Measurement Training::measurement(const sessions::LogLine& line, int64_t step, double lr) const {
  Measurement row;
  row.split = "train";
  row.epoch = line.epoch;
  row.step = step;
  row.loss = line.values.front().second;
  row.rate = line.rates.rate;
  // All replicas do the same steps with as many rows, so that one process's rate tells that of all.
  row.global_rate = line.rates.global_rate * session_.replicas();
  row.examples_per_second = line.rates.rate * session_.replicas();
  row.learning_rate = lr;
  row.steps = line.steps;
  return row;
}

Training::Totals Training::totals(double now) {
  Totals all;
  for (const std::string& one : session_.gather_on_host(
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

void Training::write(const Measurement& row) {
  if (session_.is_leader()) base::value_or_throw(metrics_->write(row));
  console_.json(json_text(row, base::wall_seconds()));
}

void Training::end_of_epoch(bool whole) {
  std::optional<int64_t> correct;
  if (correct_.defined())
    session_.after_step({correct_}, [&correct](const std::vector<torch::Tensor>& values) {
      correct = values[0].item<int64_t>();
    });
  session_.finish();
  const double now = base::monotonic_seconds();
  const Totals all = totals(now);
  worker_console().line(base::str("Epoch ", progress_.epoch + 1, " train end ", base::local_time(),
                                  ", Epoch Time=", base::duration_text_whole(now - rate_->start()),
                                  ", Replica Train Samples=", rate_->examples() / session_.local_replicas(),
                                  ", Reduced GlobalRate=", sessions::fixed(all.rate, 2)));
  report_times(now - rate_->start());
  report_mixture();
  progress_.global_rates += all.rate;
  ++progress_.rated_epochs;
  if (whole) {
    ++progress_.epoch;
    progress_.batch = 0;
  }
  progress_.seconds = earlier_seconds_ + now - started_;
  Measurement row;
  row.split = "train";
  row.epoch = shown_epoch();
  row.step = progress_.step;
  row.global_rate = all.rate;
  if (correct && all.examples > 0)
    row.accuracy = 100.0 * static_cast<double>(*correct) / static_cast<double>(all.examples);
  write(row);
}

bool Training::test_epoch() {
  if (test_ == nullptr) return agreed_halt() != Halt::kSignal;
  model_.eval();
  auto forward = [this](torch::Tensor image) {
    std::optional<Autocast> autocast;
    if (options_.precision == Precision::kBf16) autocast.emplace(session_.device());
    return forward_(std::move(image));
  };
  Evaluation test = evaluate(
      session_, forward, test_->feed(session_, 0, 0), test_->batches(),
      // Many processes do not stop in the middle: they would have to agree on the batch.
      [this] { return session_.processes() == 1 && SignalGuard::pending() != 0; },
      [this](int64_t done) { console_.progress("Test ", done, test_->batches(), ""); },
      metrics::parse("--metrics", options_.metrics, options_.classes));
  if (test.stopped) return false;
  last_accuracy_ = test.accuracy();
  progress_.best_accuracy = std::max(progress_.best_accuracy, last_accuracy_);
  console_.line(base::str("Epoch ", shown_epoch(), " test end ", base::local_time(),
                          ", Samples=", test.samples, ", Loss=", sessions::fixed(test.loss, 5), ", Accuracy=",
                          sessions::fixed(last_accuracy_, 2), "%", training_detail::line_of(test.values)));
  Measurement row;
  row.split = "test";
  row.epoch = shown_epoch();
  row.step = progress_.step;
  row.loss = test.loss;
  row.accuracy = last_accuracy_;
  row.others = training_detail::named_values(test.values);
  write(row);
  if (session_.is_leader())
    for (const auto& [name, matrix] : test.values.tensors)
      base::value_or_throw(
          write_confusion(metrics_->folder(), matrix, test_->class_names(), row.epoch, row.step));
  return true;
}

}  // namespace sluice::train
