#include "sluice/train/loop/training.h"

#include <algorithm>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/random.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/session/ahead/ahead_program.h"
#include "sluice/session/log_line.h"
#include "sluice/train/report/announcement.h"
#include "sluice/train/report/outcome.h"

namespace sluice::train {
namespace training_detail {

constexpr const char* kTestComesFirst = "A test was due where the run was stopped: it comes first.";

}  // namespace training_detail

void Training::begin() {
  const TrainOptions& options = given.options;
  start.restore();
  start.prepare(callbacks, optimizers);
  const sessions::Due& due = state.progress.due;
  if (given.session.is_leader() && (due.test || due.within_epoch)) folder.fetch_events();
  log.open(folder.local(), folder.rows());
  state.first_step = state.progress.step;
  epoch.count_tokens_before();
  limits.begin();
  if (given.test != nullptr) sessions::record_after_steps();
  announce(given, plan, log);
  checkpoints.open_top();
  start.load_callbacks(callbacks);
  callbacks.call("begin", &Callback::begin);
  if (const ProfileSteps& profiled = options.profile; !profiled.empty())
    given.session.profile(profiled.first, profiled.end, options.logdir);
}

TrainResult Training::operator()() {
  begin();
  if (!finish_due()) return stopped();
  const int64_t epochs = given.options.epochs;
  sessions::Progress& progress = state.progress;
  Halt halt = limits.reached();
  while (progress.epoch < epochs &&
         ((halt == Halt::kNone && !state.wants_stop()) || progress.due.within_epoch)) {
    halt = train_epoch();
    const bool whole = progress.batch == state.epoch_steps(), reached = limits.reached() == Halt::kMaxSteps;
    if (halt == Halt::kSignal && !whole && !reached) return stopped();
    end_of_epoch(whole);
    if (whole) callbacks.call("after_epoch", &Callback::after_epoch);
    given.session.sync_buffers(given.module);
    const std::optional<double> before = progress.best;
    const bool halts = reached || halt == Halt::kMaxTime || halt == Halt::kCallback;
    progress.due.test = tests.is_due(halts || state.wants_stop());
    progress.due.within_epoch = false;
    if (halt == Halt::kSignal) return stopped();
    if (progress.due.test && !tests.run()) return stopped();
    state.ends_here = state.wants_stop();
    save(progress.best != before);
  }
  if (state.wants_stop())
    log.line(base::str(state.stop_reason, " The run ends at epoch ", state.shown_epoch(), ", step ",
                       progress.step, "."));
  if (halt == Halt::kMaxTime && progress.epoch < epochs)
    log.line(base::str("The ", base::duration_text_whole(given.options.max_seconds),
                       " of --max-time are over at epoch ", progress.epoch + 1, ", step ", progress.step,
                       ". --resume with a longer --max-time continues the run."));
  return end();
}

Halt Training::train_epoch() {
  const TrainOptions& options = given.options;
  sessions::Progress& progress = state.progress;
  given.module.train();
  callbacks.call("before_epoch", &Callback::before_epoch);
  epoch.begin();
  const base::Stopwatch opening;
  auto feed = given.train.feed(given.session, state.data_epoch(), state.batches_done(),
                               std::exchange(progress.input, {}));  // only for the epoch that was restored
  epoch.opened(opening.seconds());
  int64_t end = state.epoch_steps();
  if (options.max_steps > 0)
    end = std::min(end, progress.batch + std::max<int64_t>(options.max_steps - progress.step, 0));
  std::function<std::optional<stablehlo::Work>()> work;
  if (options.summary > 0 && progress.step == state.first_step) work = given.session.backend().watch_work();
  Halt halt = progress.due.within_epoch ? finish_due_within_epoch() : Halt::kNone;
  while (progress.batch < end && halt == Halt::kNone) {
    optimizers.set_rates(plan.schedule, view.place());
    // Random numbers depend only on the seed and the step: a resumed run draws the same ones.
    torch::manual_seed(base::key({options.seed, static_cast<uint64_t>(progress.step)}));
    steps.run(feed);
    if (sessions::steps_are_recorded()) record_tests();
    if (const auto first = work ? work() : std::nullopt) announce_layers(given, *first, log);
    work = nullptr;
    halt = finish_step(end);
  }
  epoch.fed(feed.statistics());
  return halt == Halt::kNone && limits.reached() == Halt::kMaxSteps ? Halt::kMaxSteps : halt;
}

void Training::record_tests() {
  given.session.sync();  // as at the end of an epoch
  given.session.sync_buffers(given.module);
  tests.run();
  sessions::end_recording();
}

Halt Training::finish_step(int64_t end) {
  sessions::Progress& progress = state.progress;
  const int64_t every = given.options.test_every_steps;
  Halt halt = limits.agreed_halt();
  const bool saves = after_update(end, halt != Halt::kNone);
  callbacks.call("after_step", &Callback::after_step);
  const bool goes_on = halt == Halt::kNone && !state.wants_stop();
  const bool is_test_due = limits.agreed_test() || (every > 0 && progress.step % every == 0);
  progress.due.test = given.test != nullptr && is_test_due && progress.batch < end;
  progress.due.within_epoch = progress.due.test || state.wants_stop();
  // At the end of the run, a test and a checkpoint are made in any case.
  if (saves && goes_on) save_within_epoch();
  if (progress.due.test && goes_on && !test_within_epoch()) halt = Halt::kSignal;
  return halt == Halt::kNone && state.wants_stop() ? Halt::kCallback : halt;
}

bool Training::after_update(int64_t end, bool stop) {
  const TrainOptions& options = given.options;
  sessions::Progress& progress = state.progress;
  const double lr = optimizers.rate_now();
  ++progress.step;
  ++progress.batch;
  const bool last = progress.batch == end;
  // Counted within the epoch: the lines and checkpoints of all epochs are at the same places.
  const bool logs = progress.batch % options.log_steps == 0 || (last && end < options.log_steps);
  const bool save_steps = options.save_steps > 0 && progress.batch % options.save_steps == 0;
  const bool save_now = (limits.agreed_save() || save_steps) && !last;
  log.console().progress(base::str("Epoch ", progress.epoch + 1), progress.batch, end,
                         base::str("Loss=", sessions::fixed(report.last_loss(), 5)));
  log.deliver(/*wait=*/false);
  if (options.check_replicas > 0 && progress.step % options.check_replicas == 0)
    given.session.check_replicas(given.module);
  if (logs || last || save_now || stop) report.report(steps.logged(), lr, logs ? &epoch.rate() : nullptr);
  return save_now;
}

void Training::end_of_epoch(bool whole) {
  given.session.finish();
  sessions::Progress& progress = state.progress;
  Measurement row = epoch.end(whole);
  progress.global_rates += row.global_rate.value_or(0);
  ++progress.rated_epochs;
  if (whole) {
    ++progress.epoch;
    progress.batch = 0;
  }
  row.epoch = state.shown_epoch();
  row.step = progress.step;
  log.write(row);
}

void Training::save(bool best) {
  limits.saves();
  checkpoints.save(best);
}

void Training::save_within_epoch() {
  given.session.sync_buffers(given.module);
  given.session.finish();  // the loss is checked before its weights replace a good checkpoint
  save(false);
}

bool Training::test_within_epoch() {
  given.session.finish();  // the losses are checked before their weights replace a good checkpoint
  given.session.sync_buffers(given.module);
  const double began = base::monotonic_seconds();
  const sessions::DeviceTimes before = given.session.backend().times();
  const std::optional<double> best = state.progress.best;
  if (!tests.run()) return false;
  state.progress.due.within_epoch = state.wants_stop();
  save(state.progress.best != best);
  given.module.train();
  epoch.leave_out(began, before);  // the test's time does not count towards the epoch's
  return true;
}

bool Training::finish_due() {
  sessions::Progress& progress = state.progress;
  if (given.test == nullptr) progress.due.test = false;
  if (progress.due.within_epoch) return true;  // see finish_due_within_epoch()
  if (!state.wants_stop()) state.stop_reason = progress.due.stop;
  if (!progress.due.test && progress.due.stop.empty()) return true;
  const std::optional<double> before = progress.best;
  if (progress.due.test) {
    log.line(training_detail::kTestComesFirst);
    if (!tests.run()) return false;
  }
  state.ends_here = state.wants_stop();
  std::string input = progress.input;  // the state of the data, which the next epoch compares
  save(progress.best != before);
  progress.input = std::move(input);
  return true;
}

Halt Training::finish_due_within_epoch() {
  sessions::Progress& progress = state.progress;
  if (!state.wants_stop()) state.stop_reason = progress.due.stop;
  if (progress.due.test) {
    log.line(training_detail::kTestComesFirst);
    if (!test_within_epoch()) return Halt::kSignal;
  }
  progress.due.within_epoch = false;
  return state.wants_stop() ? Halt::kCallback : limits.agreed_halt();
}

TrainResult Training::stopped() {
  const int signal = SignalGuard::pending();
  state.stopping = true;
  given.session.sync_buffers(given.module);
  given.session.finish();
  save(false);
  checkpoints.await();
  log.deliver(/*wait=*/true);
  log.end_mlflow("KILLED", 5);
  folder.finish();
  given.session.barrier();
  log.line(base::str(signal == SIGINT ? "Interrupted" : "Terminated", ": saved ", folder.shown("last"),
                     " at epoch ", state.progress.epoch + 1, ", step ", state.progress.step,
                     ". Go on with --resume."));
  TrainResult result = outcome(given, state, tests.values(), report.last_loss());
  result.exit_status = signal == SIGINT ? kInterrupted : kTerminated;
  return result;
}

TrainResult Training::end() {
  log.deliver(/*wait=*/true);
  checkpoints.await();
  log.end_tables();
  checkpoints.remove_displaced();
  log.end_mlflow("FINISHED", 10);
  folder.finish();
  given.session.barrier();  // the checkpoint is complete before any process ends
  callbacks.call("end", &Callback::end);
  TrainResult result = outcome(given, state, tests.values(), report.last_loss());
  announce_outcome(given, state, folder, checkpoints, result, log);
  return result;
}

}  // namespace sluice::train
