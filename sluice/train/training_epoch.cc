// One epoch of a training: its steps, its lines and rows, its test.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/json_bytes.h"
#include "sluice/base/log.h"
#include "sluice/base/quantity.h"
#include "sluice/base/random.h"
#include "sluice/base/thread.h"
#include "sluice/metrics/names.h"
#include "sluice/session/log_line.h"
#include "sluice/train/confusion.h"
#include "sluice/train/test_images.h"
#include "sluice/train/training.h"
#include "sluice/train/value_text.h"

namespace sluice::train {
namespace training_detail {

constexpr int64_t kMaxSkipped = 100;  // updates in a row

// Makes the updates of one step.
class StepUpdates final : public Updates {
 public:
  using Update = std::function<void(size_t optimizer, const torch::Tensor& loss)>;
  explicit StepUpdates(Update update) : update_(std::move(update)) {}
  void update(size_t optimizer, const torch::Tensor& loss) override { update_(optimizer, loss); }

 private:
  Update update_;
};

}  // namespace training_detail

Training::Halt Training::limit_reached() const {
  if (options_.max_steps > 0 && progress_.step >= options_.max_steps) return Halt::kMaxSteps;
  const bool late = options_.max_seconds > 0 && run_seconds() >= options_.max_seconds;
  return late ? Halt::kMaxTime : Halt::kNone;
}

bool Training::agreed_save() {
  if (options_.save_minutes == 0) return false;
  const bool late = base::monotonic_seconds() - saved_ >= 60 * options_.save_minutes;
  return session_.agree_to(base::str("save after step ", saved_at_), late);
}

Training::Halt Training::agreed_halt() {
  const bool late = limit_reached() == Halt::kMaxTime;
  const bool signal = SignalGuard::pending() != 0;
  if (!session_.agree_to_stop(signal || late)) return Halt::kNone;
  for (const std::string& reason : session_.gather_on_host("halt", signal ? "signal" : "time"))
    if (reason == "signal") return Halt::kSignal;
  return Halt::kMaxTime;
}

int64_t Training::epoch_steps() const { return train_.updates(data_epoch()); }

BatchGroup Training::next_group() const {
  const int64_t first = train_.batches_of(data_epoch(), progress_.batch);
  return {train_.batches_of(data_epoch(), progress_.batch + 1) - first, session_.replicas()};
}

Training::Halt Training::train_epoch() {
  model_.train();
  call_back("before_epoch", [this](Callback& callback) { callback.before_epoch(*this); });
  rate_.emplace(base::monotonic_seconds(), session_.local_replicas());
  epoch_means_.emplace(session_);
  epoch_began_ = session_.backend().times();
  const base::Stopwatch opening;
  auto feed = train_.feed(session_, data_epoch(), train_.batches_of(data_epoch(), progress_.batch),
                          std::exchange(progress_.input, {}));  // only for the epoch that was restored
  opening_input_ = opening.seconds();
  int64_t steps = epoch_steps();
  if (options_.max_steps > 0)
    steps = std::min(steps, progress_.batch + std::max<int64_t>(options_.max_steps - progress_.step, 0));
  std::function<std::optional<stablehlo::Work>()> work;
  if (options_.summary > 0 && progress_.step == first_step_) work = session_.backend().watch_work();
  Halt halt = progress_.due.within_epoch ? finish_due_within_epoch() : Halt::kNone;
  while (progress_.batch < steps && halt == Halt::kNone) {
    set_learning_rates();
    // Random numbers depend only on the seed and the step: a resumed run draws the same ones.
    torch::manual_seed(base::key({options_.seed, static_cast<uint64_t>(progress_.step)}));
    train_step(feed);
    if (const auto first = work ? work() : std::nullopt) announce_layers(*first);
    work = nullptr;
    halt = agreed_halt();
    const bool saves = after_update(steps, halt != Halt::kNone);
    call_back("after_step", [this](Callback& callback) { callback.after_step(*this); });
    const bool goes_on = halt == Halt::kNone && stop_reason_.empty();
    const bool tests = options_.test_every_steps > 0 && progress_.step % options_.test_every_steps == 0;
    progress_.due.test = test_ != nullptr && tests && progress_.batch < steps;
    progress_.due.within_epoch = progress_.due.test || !stop_reason_.empty();
    // At the end of the run, a test and a checkpoint are made in any case.
    if (saves && goes_on) save_within_epoch();
    if (progress_.due.test && goes_on && !test_within_epoch()) halt = Halt::kSignal;
    if (halt == Halt::kNone && !stop_reason_.empty()) halt = Halt::kCallback;
  }
  fed_ = feed.statistics();
  return halt == Halt::kNone && limit_reached() == Halt::kMaxSteps ? Halt::kMaxSteps : halt;
}

void Training::in_step(const std::function<void()>& work) const {
  try {
    work();
  } catch (const Error& error) {
    throw_error(error.code(), base::str("step ", progress_.step + 1, ": ", error.what()));
  }
}

void Training::train_step(Feed& feed) {
  BatchGroup group = next_group();
  if (skipped_) skipped_->begin_step();
  std::shared_ptr<Batch> batch;
  for (int64_t i = 0; i < group.batches(); ++i) {
    batch = feed.next();
    if (!batch)
      throw_error(Code::kDataLoss, "the training set ended before its epoch: did its shards change?");
    std::optional<Accumulate> more;
    if (i + 1 < group.batches()) more.emplace(session_);
    in_step([&] { train_batch(*batch, group); });
    rate_->add(batch->count);
    if (more) session_.step(std::vector<torch::optim::Optimizer*>());
  }
  NamedValues means = group.means();
  if (!logged_.empty()) in_step([&] { check_same_names(logged_, means); });
  logged_ = std::move(means);
  group.scale_gradients(model_);
  end_step(*batch, group.batches());
}

Training::Halt Training::finish_due_within_epoch() {
  if (stop_reason_.empty()) stop_reason_ = progress_.due.stop;
  if (progress_.due.test) {
    console_.line("A test was due where the run was stopped: it comes first.");
    if (!test_within_epoch()) return Halt::kSignal;
  }
  progress_.due.within_epoch = false;
  return stop_reason_.empty() ? agreed_halt() : Halt::kCallback;
}

void Training::save_within_epoch() {
  session_.sync_buffers(model_);
  session_.finish();  // the loss is checked before its weights replace a good checkpoint
  save(false);
}

// The test's time does not count towards the epoch's.
bool Training::test_within_epoch() {
  session_.finish();  // the losses are checked before their weights replace a good checkpoint
  session_.sync_buffers(model_);
  const double begin = base::monotonic_seconds();
  const sessions::DeviceTimes before = session_.backend().times();
  const std::optional<double> best = progress_.best;
  if (!test_epoch()) return false;
  progress_.due.within_epoch = !stop_reason_.empty();
  save(progress_.best != best);
  model_.train();
  const sessions::DeviceTimes now = session_.backend().times();
  epoch_began_.busy += now.busy - before.busy;
  epoch_began_.compiling += now.compiling - before.compiling;
  epoch_began_.compiling_idle += now.compiling_idle - before.compiling_idle;
  rate_->leave_out(begin, base::monotonic_seconds());
  return true;
}

// An update with fewer batches than others is a separate program.
void Training::end_step(const Batch& batch, int64_t batches) {
  StepOptions options = clip();
  std::string boundary = step_names_.name("step", batch);
  if (batches < options_.accumulate) boundary += base::str(" of ", base::counted(batches, "batch"));
  torch::Tensor skipped;
  options.behind_update = [&] {
    if (skipped_ && steps_.training_step) skipped_->after_update();
    if (skipped_) skipped = skipped_->end_step();
    call_back("within_step", [this](Callback& callback) { callback.within_step(*this); });
    if (boundary != "step") session_.sync(boundary.c_str());
  };
  const auto all = steps_.updating_step ? std::vector<torch::optim::Optimizer*>() : optimizers();
  if (skipped_ && steps_.training_step) skipped_->before_update(logged_.front().second, all);
  session_.step(all, options);
  if (skipped_) count_skipped(skipped);
}

void Training::count_skipped(const torch::Tensor& skipped) {
  session_.after_step({skipped}, [this, alive = std::weak_ptr<char>(alive_),
                                  step = progress_.step + 1](const std::vector<torch::Tensor>& host) {
    if (alive.expired()) return;
    if (host.front().item<double>() == 0) {
      skipped_in_a_row_ = 0;
      return;
    }
    ++progress_.skipped;
    if (session_.is_leader())
      base::warn("step ", step, ": its loss or gradients are NaN or infinite, so its update was skipped (",
                 base::counted(progress_.skipped, "skipped update"), " so far)");
    if (++skipped_in_a_row_ < training_detail::kMaxSkipped) return;
    throw_error(
        Code::kOutOfRange,
        base::str("the last ", skipped_in_a_row_, " updates were all skipped, because their losses or ",
                  "gradients are NaN or infinite: the weights no longer change. Try a smaller --lr, ",
                  "or look for the first one with --detect-anomaly. ", last_good()));
  });
}

// Reports the sources of a mixture in this epoch.
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
  console_.json(base::with_json_texts(event).dump());
}

std::uint64_t Training::tokens_of(int64_t epoch, int64_t updates) const {
  const std::vector<std::uint64_t> tokens = train_.tokens(data_epoch(epoch));
  const auto end = updates < 0 ? tokens.end() : tokens.begin() + std::min(updates, std::ssize(tokens));
  return std::accumulate(tokens.begin(), end, std::uint64_t{0});
}

// Reports the tokens at the end of an epoch, before the next one begins.
void Training::report_tokens(bool whole, Measurement& row) {
  if (!session_.is_leader()) return;
  const std::uint64_t own = tokens_of(progress_.epoch, progress_.batch), all = tokens_before_ + own;
  if (all == 0) return;
  if (whole) tokens_before_ = all;
  console_.line(base::str("Epoch ", progress_.epoch + 1, " took ",
                          base::counted(static_cast<int64_t>(own), "token"), ", the run ",
                          base::grouped(static_cast<int64_t>(all)), " so far."));
  row.others.push_back({"tokens_seen", "Tokens seen", static_cast<double>(all)});
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

void Training::train_batch(Batch& batch, BatchGroup& group) {
  check_columns(batch);
  training_detail::StepUpdates updates([&](size_t index, const torch::Tensor& loss) {
    const c10::impl::ExcludeDispatchKeyGuard in_full_precision(c10::autocast_dispatch_keyset);
    if (index >= optimizers_.size())
      throw_error(Code::kOutOfRange, base::str("update(", index, "): there are ", optimizers_.size(),
                                               " optimizers, numbered from 0"));
    const torch::Tensor mean = mean_of("loss", loss, batch);
    check_has_gradient(mean);
    mean.backward();
    if (skipped_) skipped_->before_update(mean, {optimizers_[index].setup.optimizer.get()});
    session_.update(*optimizers_[index].setup.optimizer, clip());
    if (skipped_) skipped_->after_update();
    for (auto* other : optimizers()) other->zero_grad();
  });
  StepOutput step;
  {
    std::optional<Autocast> autocast;
    if (options_.precision == Precision::kBf16) autocast.emplace(session_.device());
    step = steps_.training_step ? steps_.training_step(batch) : steps_.updating_step(batch, updates);
  }
  if (steps_.training_step && !step.loss.defined())
    throw_error(Code::kInvalidArgument, "training_step returned no loss");
  std::optional<RowWeights> weights;
  if (step.weight.defined()) weights.emplace(step.weight, batch, session_.replicas());
  const auto mean = [&](const std::string& name, const torch::Tensor& value) {
    return weights ? weights->mean(name, value) : mean_of(name, value, batch);
  };
  NamedValues values;
  if (step.loss.defined()) {
    const torch::Tensor loss = mean("loss", step.loss);
    if (steps_.training_step) group.backward(loss, step.loss, weights);
    values.emplace_back("loss", loss.detach());
  }
  torch::NoGradGuard no_grad;
  if (!step.epoch_logs.empty()) epoch_means_->add(step.epoch_logs, batch, step.weight);
  for (const auto& [name, value] : step.logs) values.emplace_back(name, mean(name, value.detach()));
  if (progress_.step == first_step_) {
    std::set<std::string> seen;
    for (const auto* named : {&values, &step.epoch_logs})
      for (const auto& [name, value] : *named) base::value_or_throw(check_name(name));
    for (const auto& [name, value] : values)
      if (!seen.insert(name).second)
        throw_error(
            Code::kInvalidArgument,
            base::str("it gives two values with the name '", name, "': ",
                      name == "loss" ? "'loss' is the name of StepOutput::loss, so call the one in logs "
                                     : "call one of them ",
                      "something else"));
  }
  group.add(values, weights);
}

bool Training::after_update(int64_t steps, bool stop) {
  const double lr = learning_rate_now();
  ++progress_.step;
  ++progress_.batch;
  const bool last = progress_.batch == steps;
  // Counted within the epoch: the lines and checkpoints of all epochs are at the same places.
  const bool log = progress_.batch % options_.log_steps == 0 || (last && steps < options_.log_steps);
  const bool save_steps = options_.save_steps > 0 && progress_.batch % options_.save_steps == 0;
  const bool save_now = (agreed_save() || save_steps) && !last;
  console_.progress(base::str("Epoch ", progress_.epoch + 1), progress_.batch, steps,
                    base::str("Loss=", sessions::fixed(last_loss_, 5)));
  deliver_logs(/*wait=*/false);
  if (options_.check_replicas > 0 && progress_.step % options_.check_replicas == 0)
    session_.check_replicas(model_);
  if (!log && !last && !save_now && !stop) return false;
  const sessions::LogLine line{.device = session_.device(),
                               .process = session_.process_index(),
                               .epoch = progress_.epoch + 1,
                               .step = progress_.batch,
                               .rates = log ? rate_->take(base::monotonic_seconds()) : sessions::Rates{},
                               .time = base::local_time()};
  std::vector<torch::Tensor> tensors;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : logged_) {
    names.push_back(name);
    tensors.push_back(tensor);
  }
  // The rates of the steps up to this one; set when the line appears.
  const auto rates = std::make_shared<std::optional<StepRates>>();
  const auto complete = [this, rates, log, names, line,
                         until = session_.steps()](const std::vector<torch::Tensor>& host) {
    sessions::LogLine whole = line;
    for (size_t i = 0; i < names.size(); ++i)
      whole.values.emplace_back(names[i], host[i].to(torch::kDouble).mean().item<double>());
    if (!log) return whole;
    if (!*rates) *rates = session_.step_rates(until);
    whole.steps = **rates;
    return whole;
  };
  session_.after_step(tensors, [=, this, alive = std::weak_ptr<char>(alive_),
                                step = progress_.step](const std::vector<torch::Tensor>& host) {
    if (!alive.expired()) report(complete(host), step, lr, log);
  });
  if (log && all_workers_log())
    session_.after_step(
        tensors,
        [=, this, alive = std::weak_ptr<char>(alive_),
         step = progress_.step](const std::vector<torch::Tensor>& host) {
          if (!alive.expired()) report_own(complete(host), step, lr);
        },
        Over::kLocalReplicas);
  return save_now;
}

void Training::check_finite(const sessions::LogLine& line, int64_t step, double lr) {
  if (skipped_) return;
  for (const auto& [name, value] : line.values) {
    // If the step returns no loss itself, any of its values may be one.
    if (std::isfinite(value) || (steps_.training_step && name != "loss")) continue;
    throw_error(Code::kOutOfRange,
                base::str("the ", name, " is ", value, " at step ", step, " (epoch ", line.epoch, ", batch ",
                          line.step, "). Try a smaller --lr (", lr,
                          " now), --warmup-epochs or --clip-norm, or ", "--on-nan skip. ", last_good()));
  }
}

void Training::report(sessions::LogLine line, int64_t step, double lr, bool log) {
  if (!line.values.empty()) last_loss_ = line.values.front().second;
  check_finite(line, step, lr);
  if (!log) return;
  const Measurement row = measurement(line, step, lr);
  for (auto& [name, value] : line.values) name = metrics::label(name);
  if (!all_workers_log()) console_.line(text_of(line));
  write(row);
}

// Prints the line of this process only.
void Training::report_own(sessions::LogLine line, int64_t step, double lr) {
  Measurement row = measurement(line, step, lr);
  for (auto& [name, value] : line.values) name = metrics::label(name);
  worker_console().line(text_of(line));
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
  for (const auto& [name, value] : line.values) {
    if (name == "loss")
      row.loss = value;
    else
      row.others.push_back({name, metrics::label(name), value});
  }
  row.rate = line.rates.rate;
  // All replicas do the same steps with equally many rows, so one process's rate gives the rate of all
  // replicas.
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
  session_.finish();
  const metrics::Values means = epoch_means_->compute();
  const double now = base::monotonic_seconds();
  const Totals all = totals(now);
  worker_console().line(base::str("Epoch ", progress_.epoch + 1, " train end ", base::local_time(),
                                  ", Epoch Time=", base::duration_text_whole(now - rate_->start()),
                                  ", Replica Train Samples=", rate_->examples() / session_.local_replicas(),
                                  ", Reduced GlobalRate=", sessions::fixed(all.rate, 2)));
  report_times(now - rate_->start());
  report_mixture();
  Measurement row;
  report_tokens(whole, row);
  progress_.global_rates += all.rate;
  ++progress_.rated_epochs;
  if (whole) {
    ++progress_.epoch;
    progress_.batch = 0;
  }
  progress_.seconds = earlier_seconds_ + now - started_;
  row.split = "train";
  row.of_epoch = true;
  row.epoch = shown_epoch();
  row.step = progress_.step;
  row.global_rate = all.rate;
  put_into(row, means);
  if (skipped_)
    row.others.push_back({"skipped_updates", "Skipped updates", static_cast<double>(progress_.skipped)});
  write(row);
}

bool Training::forward_epoch(const std::function<void()>& after_batch) {
  constexpr uint64_t kOfPass = 0x5041;  // no step uses these random numbers
  if (stopping_ || !steps_.training_step) return false;
  int64_t number = progress_.epoch - (progress_.batch > 0 ? 0 : 1);
  while (number > 0 && train_.updates(data_epoch(number)) == 0) --number;
  const int64_t epoch = data_epoch(std::max<int64_t>(number, 0));
  torch::NoGradGuard no_grad;
  torch::manual_seed(base::key({options_.seed, static_cast<uint64_t>(progress_.step), kOfPass}));
  const bool was_training = model_.is_training();
  model_.train();
  auto feed = train_.feed(session_, epoch, 0);
  const int64_t batches = train_.batches_of(epoch, train_.updates(epoch));
  bool whole = true;
  for (int64_t i = 0; i < batches && whole; ++i) {
    auto batch = feed.next();
    if (!batch) break;
    std::optional<Autocast> autocast;
    if (options_.precision == Precision::kBf16) autocast.emplace(session_.device());
    steps_.training_step(*batch);
    autocast.reset();
    after_batch();
    session_.sync(step_names_.name("statistics", *batch).c_str());
    console_.progress("Statistics", i + 1, batches, "");
    // Several processes do not stop in the middle: they would have to agree on the batch.
    whole = session_.processes() > 1 || SignalGuard::pending() == 0;
  }
  model_.train(was_training);
  return whole;
}

void Training::judge(const metrics::Values& values) {
  const Monitor& monitor = steps_.monitor;
  const metrics::Value& value = values.value(monitor.name);
  const double now = train::shown(value);
  if (std::isnan(now)) {
    progress_.value.reset();
    base::warn("the ", monitor.name, " of the test is NaN: these weights are not kept as the best");
    return;
  }
  progress_.value = now;
  if (!progress_.best || monitor.is_better(now, *progress_.best)) progress_.best = now;
}

std::optional<metrics::Values> Training::test_on(const Input& set, const std::string& name) {
  TestImages images(options_.log_images, options_.mean, options_.deviation);
  std::function<void(const Batch&, const StepOutput&)> look;
  if (options_.log_images > 0 && name.empty())
    look = [&](const Batch& batch, const StepOutput& step) { images.look(session_, batch, step); };
  Evaluation test = evaluate(
      session_, steps_, set.feed(session_, 0, 0), set.batches(), options_.precision == Precision::kBf16,
      // Several processes do not stop in the middle: they would have to agree on the batch.
      [this] { return session_.processes() == 1 && SignalGuard::pending() != 0; },
      [&](int64_t done) {
        console_.progress(name.empty() ? "Test " : base::str("Test ", name, " "), done, set.batches(), "");
      },
      look);
  if (test.stopped) return std::nullopt;
  if (look && session_.is_leader() && !metrics_->has_test(progress_.step))
    images.write(metrics_->events(), set.class_names(), progress_.step);
  console_.line(base::str("Epoch ", shown_epoch(), " test ", name, name.empty() ? "" : " ", "end ",
                          base::local_time(), ", Samples=", test.samples, line_of(test.values)));
  return std::move(test.values);
}

bool Training::test_epoch() {
  model_.eval();
  call_back("before_reading", [this](Callback& callback) { callback.before_reading(*this); });
  Measurement row;
  row.split = "test";
  row.epoch = shown_epoch();
  row.step = progress_.step;
  std::optional<metrics::Values> values = test_on(*test_, "");
  if (values) put_into(row, *values);
  for (const NamedTest& more : more_tests_) {
    const auto found = values ? test_on(more.input, more.name) : std::nullopt;
    if (!found) values.reset();
    if (values) put_into(row, *values, *found, more.name);
  }
  call_back("after_reading", [this](Callback& callback) { callback.after_reading(*this); });
  if (!values) return false;
  if (tested_.numbers.empty())
    for (const auto& value : values->numbers) base::value_or_throw(check_name(value.name));
  judge(*values);
  write(row);
  tested_ = *values;
  progress_.tested = progress_.step;
  progress_.due.test = false;
  call_back("after_test", [this](Callback& callback) { callback.after_test(*this, tested_); });
  if (session_.is_leader())
    for (const auto& [name, matrix] : values->tensors)
      base::value_or_throw(
          write_confusion(metrics_->folder(), matrix, test_->class_names(), row.epoch, row.step));
  return true;
}

}  // namespace sluice::train
