#include "sluice/train/training.h"

#include <cmath>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/file.h"
#include "sluice/base/json_bytes.h"
#include "sluice/base/log.h"
#include "sluice/base/process.h"
#include "sluice/base/quantity.h"
#include "sluice/session/log_line.h"
#include "sluice/session/remote_checkpoint.h"
#include "sluice/session/weights.h"
#include "sluice/train/hyper_parameters.h"
#include "sluice/train/model_summary.h"
#include "sluice/train/optimizers.h"
#include "sluice/train/value_text.h"

namespace sluice::train {
namespace training_detail {

constexpr const char* kCallback = "callback.";

std::string prefix_of(const Callback& callback) { return base::str(kCallback, callback.name(), "."); }

// Checks that the optimizers are over parameters of the model, and share none.
void check_setups(const std::vector<OptimizerSetup>& setups, const torch::nn::Module& model) {
  if (setups.empty()) throw_error(Code::kInvalidArgument, "configure_optimizers returned no optimizer");
  std::map<const void*, std::string> names;
  for (const auto& item : model.named_parameters()) names[item.value().unsafeGetTensorImpl()] = item.key();
  std::set<const void*> taken;
  for (size_t i = 0; i < setups.size(); ++i) {
    if (setups[i].optimizer == nullptr)
      throw_error(Code::kInvalidArgument, base::str("configure_optimizers: setup ", i, " has no optimizer"));
    if (dynamic_cast<const torch::optim::LBFGS*>(setups[i].optimizer.get()) != nullptr)
      throw_error(Code::kInvalidArgument,
                  base::str("configure_optimizers: optimizer ", i, " is LBFGS, which computes the loss ",
                            "several times in an update, and a step of the trainer computes it once: use ",
                            "session.step(optimizer, closure) in a loop of your own"));
    for (const auto& group : setups[i].optimizer->param_groups())
      for (const torch::Tensor& parameter : group.params()) {
        const void* const one = parameter.unsafeGetTensorImpl();
        if (names.count(one) == 0)
          throw_error(
              Code::kInvalidArgument,
              base::str(
                  "configure_optimizers: optimizer ", i, " has a parameter of shape ", parameter.sizes(),
                  " that does not belong to the module, so no checkpoint would have it: make the optimizer "
                  "of module.parameters()"));
        if (!taken.insert(one).second)
          throw_error(Code::kInvalidArgument, base::str("configure_optimizers: the parameter ", names[one],
                                                        " is in two optimizers or groups"));
      }
  }
}

}  // namespace training_detail

int64_t rows_per_replica(const TrainOptions& options, int replicas) {
  if (options.global_batch_size == 0) return options.batch_size;
  const int64_t parts = replicas * options.accumulate;
  if (options.global_batch_size % parts != 0)
    throw_error(Code::kInvalidArgument,
                base::str("--global-batch-size ", options.global_batch_size, " is no multiple of ", replicas,
                          " replicas × accumulate ", options.accumulate, " = ", parts));
  return options.global_batch_size / parts;
}

Training::Training(const TrainOptions& options, Session& session, const Input& train, const Input* test,
                   const std::vector<NamedTest>& more_tests, torch::nn::Module& model, const Steps& steps,
                   std::vector<std::shared_ptr<Callback>> callbacks)
    : options_(options),
      session_(session),
      train_(train),
      test_(test),
      more_tests_(more_tests),
      model_(model),
      steps_(steps),
      callbacks_(std::move(callbacks)),
      console_(!session.is_leader() || options.quiet ? ConsoleMode::kSilent
               : options.json                        ? ConsoleMode::kJson
                                                     : ConsoleMode::kText),
      step_names_(/*all=*/options.find_batch_size),
      length_(run_length(train, options)),
      started_(base::monotonic_seconds()),
      saved_(started_) {
  if (length_.max_steps == 0)
    throw_error(Code::kInvalidArgument,
                base::str("no epoch of the training set has a step: its rows fill no ",
                          "batch; choose a smaller --batch-size"));
  const double epoch = length_.steps_per_epoch;
  const int64_t all = length_.steps;
  // A max_steps from max_tokens is exact, even if epochs differ in their number of steps from the first one.
  if (options.max_steps > all && options.max_tokens == 0)
    throw_error(Code::kInvalidArgument,
                base::str("--max-steps ", options.max_steps, " has no effect: ", options.epochs,
                          " epochs of ", length_.min_steps == length_.max_steps ? "" : "up to ",
                          length_.max_steps, " steps end before it; choose more --epochs"));
  schedule_ = {.kind = options.lr_schedule,
               .lr = options.lr,
               .warmup_epochs = options.warmup_steps > 0 ? static_cast<double>(options.warmup_steps) / epoch
                                                         : options.warmup_epochs,
               .every_epochs = options.lr_every_epochs,
               .divisor = options.lr_divisor,
               .min_lr = options.min_lr,
               .decay_epochs = options.decay_steps > 0 ? static_cast<double>(options.decay_steps) / epoch
                                                       : options.decay_epochs,
               .epochs = static_cast<double>(options.max_steps > 0 ? options.max_steps : all) / epoch,
               .steps_per_epoch = epoch};
  base::value_or_throw(check(schedule_));
  if (options.on_nan == OnNan::kSkip) skipped_.emplace(session_, model_);
  if (all_workers_log() && !session.is_leader() && !options.quiet)
    own_console_.emplace(options.json ? ConsoleMode::kJson : ConsoleMode::kText);
  progress_.model = options.model;
  progress_.monitor = steps.monitor.name;
  progress_.config = options.config;
  if (RemoteFolder::is_remote(options.logdir)) {
    remote_ = base::value_or_throw(RemoteFolder::open(options.logdir, session.is_leader()));
    writer_.set_publish(
        [this](const std::vector<std::string>& folders) { return remote_->publish(folders); });
  }
}

Training::~Training() {
  // Restores the rates that configure_optimizers set. The next training with the same optimizer begins with
  // them, and not with the schedule's last ones.
  for (const auto& [setup, rates] : optimizers_) {
    auto& groups = setup.optimizer->param_groups();
    for (size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(rates[i]);
  }
  for (const auto* optimizer : optimizers()) session_.release(*optimizer);
}

std::string Training::folder(const char* name) const {
  return base::join_path(remote_ ? remote_->local() : options_.logdir, name);
}

std::string Training::find_start() {
  std::string from = options_.resume;
  if (from == "auto" && remote_) {
    from = base::value_or_throw(remote_->find_start());
  } else if (from == "auto") {
    from = base::value_or_throw(sessions::find_whole_checkpoint(folder("last")));
  }
  if (!RemoteFolder::is_remote(from)) return from;
  fetched_ = base::value_or_throw(base::TemporaryDirectory::create("sluice-resume"));
  base::value_or_throw(sessions::fetch_checkpoint(from, fetched_->path()));
  base::value_or_throw(sessions::check_whole(fetched_->path(), from));
  return fetched_->path();
}
double Training::run_seconds() const { return earlier_seconds_ + base::monotonic_seconds() - started_; }

RunPlace Training::place() const {
  const auto steps = static_cast<int64_t>(std::llround(schedule_.epochs * schedule_.steps_per_epoch));
  const double part = progress_.batch == 0 ? 0
                                           : static_cast<double>(progress_.batch) /
                                                 static_cast<double>(std::max<int64_t>(epoch_steps(), 1));
  return {.step = progress_.step,
          .epoch = static_cast<double>(progress_.epoch) + part,
          .steps = steps,
          .epochs = schedule_.epochs};
}

void Training::set_learning_rates() {
  for (const auto& [setup, rates] : optimizers_) {
    auto& groups = setup.optimizer->param_groups();
    for (size_t i = 0; i < groups.size(); ++i) {
      ScheduleOptions own = schedule_;
      own.lr = rates.at(i);
      groups[i].options().set_lr(setup.factor ? rates[i] * setup.factor(place())
                                              : learning_rate(own, progress_.step));
    }
  }
}

double Training::learning_rate_now() const {
  return optimizers_.front().setup.optimizer->param_groups().front().options().get_lr();
}

std::vector<torch::optim::Optimizer*> Training::optimizers() const {
  std::vector<torch::optim::Optimizer*> all;
  for (const auto& one : optimizers_) all.push_back(one.setup.optimizer.get());
  return all;
}

void Training::restore() {
  const std::string from = find_start();
  if (!from.empty()) {
    restored_ = base::value_or_throw(sessions::read_checkpoint(from));
    restored_from_ = !fetched_ ? from : options_.resume == "auto" ? options_.logdir : options_.resume;
    base::value_or_throw(sessions::load_module(model_, restored_->model, restored_from_));
    sessions::Progress own = std::move(progress_);
    progress_ = restored_->progress;
    progress_.model = std::move(own.model);
    progress_.config = std::move(own.config);
    if (progress_.monitor != own.monitor) progress_.best.reset();  // `best` was of another value
    progress_.monitor = std::move(own.monitor);
    progress_.value.reset();  // of a test before this part of the run
    earlier_seconds_ = progress_.seconds;
    console_.line(base::str("Going on from ", restored_from_, ": epoch ", progress_.epoch + 1, ", step ",
                            progress_.step));
    return;
  }
  if (remote_ ? base::value_or_throw(remote_->has_checkpoint())
              : !sessions::find_checkpoint(folder("last")).empty())
    base::warn(shown("last"),
               " is a checkpoint of an earlier run and will be replaced: --resume would continue from it");
  if (!options_.weights.empty()) {
    base::value_or_throw(sessions::load_module(
        model_, base::value_or_throw(sessions::read_weights(options_.weights)), options_.weights));
  }
}

void Training::prepare() {
  model_.to(session_.device());
  call_back("before_optimizers", [this](Callback& callback) { callback.before_optimizers(*this); });
  std::vector<OptimizerSetup> setups;
  if (steps_.configure_optimizers) setups = steps_.configure_optimizers();
  if (!steps_.configure_optimizers) setups.push_back({make_optimizer(options_, model_.parameters()), {}});
  training_detail::check_setups(setups, model_);
  for (OptimizerSetup& setup : setups) {
    std::vector<double> rates;
    for (auto& group : setup.optimizer->param_groups()) rates.push_back(group.options().get_lr());
    optimizers_.push_back({std::move(setup), std::move(rates)});
  }
  if (restored_) {
    for (auto* optimizer : optimizers())
      base::value_or_throw(sessions::load_optimizer(*optimizer, model_, restored_->state, restored_from_));
    sessions::restore_random(*restored_);
    for (auto& [name, tensor] : restored_->state)
      if (base::starts_with(name, training_detail::kCallback)) restored_tensors_.emplace_back(name, tensor);
    restored_.reset();
    fetched_.reset();
  }
  session_.prepare(model_, optimizers());
}

void Training::open_metrics() {
  if (session_.is_leader())
    metrics_ = base::value_or_throw(MetricsWriter::create(
        remote_ ? remote_->local() : options_.logdir, progress_.step,
        {.test = progress_.due.test && test_ != nullptr, .epoch_end = progress_.due.within_epoch}));
  if (metrics_) {
    const int64_t batch = train_.rows() * session_.replicas() * options_.accumulate;
    const auto parameters = hyper_parameters(options_, batch);
    base::value_or_throw(metrics_->begin(parameters, options_.config));
    // `sluice estimate` only looks at the first steps.
    if (!options_.mlflow.empty() && !base::environment("SLUICE_AHEAD")) open_mlflow(parameters);
  }
}

void Training::open_mlflow(const std::vector<HyperParameter>& parameters) {
  const std::string logdir = sessions::without_slash(options_.logdir);
  const MlflowOptions mlflow{.uri = options_.mlflow,
                             .experiment = options_.mlflow_experiment,
                             .run_name = logdir.substr(logdir.rfind('/') + 1),
                             .authorization = mlflow_authorization(),
                             .shown_folder = options_.logdir};
  const std::optional<int64_t> last = options_.resume.empty() ? std::nullopt : std::optional(progress_.step);
  mlflow_ = base::value_or_throw(MlflowRun::open(mlflow, metrics_->folder(), last));
  MlflowTexts tags = {{"mlflow.source.name", "sluice train"},
                      {"sluice.version", SLUICE_VERSION},
                      {"sluice.logdir", options_.logdir},
                      {"sluice.host", base::host_name()}};
  if (const auto user = base::environment("USER")) tags.emplace_back("mlflow.user", *user);
  base::value_or_throw(mlflow_->begin(parameters, tags));
  metrics_->also_to(
      [this](const auto& values, int64_t step, double wall) { return mlflow_->metrics(values, step, wall); });
}

void Training::end_mlflow(const char* status, double seconds) {
  if (!mlflow_) return;
  base::value_or_throw(mlflow_->end(status, seconds));
  mlflow_.reset();
  metrics_->also_to({});
}

void Training::log_image(const std::string& tag, const torch::Tensor& image) {
  tensor_logs_.image(session_.backend(), tag, image, progress_.step);
}

void Training::log_histogram(const std::string& tag, const torch::Tensor& values) {
  tensor_logs_.histogram(session_.backend(), tag, values, progress_.step);
}

void Training::log_scalar(const std::string& tag, const torch::Tensor& value) {
  tensor_logs_.scalar(session_.backend(), tag, value, progress_.step);
}
void Training::log_scalar(const std::string& tag, double value) {
  log_scalar(tag, torch::scalar_tensor(value, torch::kDouble));
}
void Training::log_text(const std::string& tag, const std::string& markdown) {
  if (metrics_)
    base::value_or_throw(metrics_->events().text(tag, markdown, progress_.step, base::wall_seconds()));
}

void Training::announce() {
  console_.line(base::str(session_.backend().is_xla() ? describe_device() : "LibTorch's own CPU", "; ",
                          base::counted(session_.replicas(), "replica"), " in ",
                          base::counted(session_.processes(), "process"),
                          session_.peak_text().empty() ? "" : "; peak of a replica ", session_.peak_text()));
  const int64_t rows = train_.rows();
  console_.line(base::str("batch ", rows, " × ", base::counted(session_.replicas(), "replica"),
                          " × accumulate ", options_.accumulate, " = ",
                          rows * session_.replicas() * options_.accumulate));
  int64_t weights = 0;
  for (const auto& parameter : model_.parameters()) weights += parameter.numel();
  console_.line(base::str(
      "model ", options_.model.empty() ? model_.name() : options_.model, ": ", weights, " weights on ",
      session_.device(), ", ", name_of(options_.precision), "; train ", train_.samples(), " samples, test ",
      test_ ? test_->samples() : 0, "; ", text_of(length_), ", ", base::counted(options_.epochs, "epoch"),
      options_.max_steps > 0 ? base::str(", but ", base::counted(options_.max_steps, "step"), " at most")
                             : "",
      options_.max_tokens > 0 ? base::str(" (", base::grouped(options_.max_tokens), " tokens)") : "", "; ",
      train_.describe_remainder()));
  if (!length_.empty.empty() && session_.is_leader()) {
    std::vector<std::string> numbers;
    for (const int64_t epoch : length_.empty) numbers.push_back(std::to_string(epoch + 1));
    base::warn(numbers.size() == 1 ? "epoch " : "epochs ", base::join(numbers, ", "),
               numbers.size() == 1 ? " has no step" : " have no step",
               ": what their order packs fills no batch; choose a smaller --batch-size");
  }
  if (train_.batches() < options_.accumulate && session_.is_leader())
    base::warn("an epoch has ", base::counted(train_.batches(), "batch"), ", less than --accumulate ",
               options_.accumulate, ": it is one update of them");
  if (options_.summary > 0 && !session_.backend().is_xla())
    console_.line(model_summary(model_, options_.summary));
  if (!options_.where.empty() || !options_.test_where.empty()) announce_filters();
}

// Prints the layers of the step that `work` belongs to.
void Training::announce_layers(const stablehlo::Work& work) {
  console_.line(model_summary(model_, options_.summary, work));
  console_.line(base::str("The first step needs about ",
                          base::memory_text(static_cast<uint64_t>(work.peak_bytes)),
                          " on a replica: ", base::memory_text(static_cast<uint64_t>(work.argument_bytes)),
                          " for weights, the optimizer's states and the batch, the rest for values that ",
                          "its layers make. An estimate without what the compiler fuses or computes again."));
}

void Training::announce_filters() {
  const auto part = [](const char* flag, const Input& set) {
    return base::str(flag, " leaves out ", set.left_out(), " of ", set.samples() + set.left_out(),
                     " samples");
  };
  std::vector<std::string> parts;
  nlohmann::json event = {{"event", "filter"}, {"left_out", train_.left_out()}};
  if (!options_.where.empty()) parts.push_back(part("--where", train_));
  if (!options_.test_where.empty() && test_ != nullptr) {
    parts.push_back(part("--test-where", *test_));
    event["test_left_out"] = test_->left_out();
  }
  console_.line(base::join(parts, "; "));
  console_.json(event.dump());
}

TrainResult Training::operator()() {
  restore();
  prepare();
  open_metrics();
  first_step_ = progress_.step;
  if (session_.is_leader())
    for (int64_t epoch = 0; epoch < progress_.epoch; ++epoch) tokens_before_ += tokens_of(epoch);
  saved_at_ = session_.steps();
  announce();
  if (options_.save_top_k > 0 && session_.is_leader())
    top_ = std::make_unique<TopCheckpoints>(base::value_or_throw(
        TopCheckpoints::open(remote_ ? remote_->top() : top_in_folder(options_.logdir), options_.save_top_k,
                             steps_.monitor, progress_.step, progress_.due.test && test_ != nullptr)));
  load_callbacks();
  call_back("begin", [this](Callback& callback) { callback.begin(*this); });
  if (const ProfileSteps steps = profile_steps(options_.profile); steps.end > 0)
    session_.profile(steps.first, steps.end, options_.logdir);
  if (!finish_due()) return stopped();
  Halt halt = limit_reached();
  while (progress_.epoch < options_.epochs &&
         ((halt == Halt::kNone && stop_reason_.empty()) || progress_.due.within_epoch)) {
    halt = train_epoch();
    const bool whole = progress_.batch == epoch_steps(), reached = limit_reached() == Halt::kMaxSteps;
    if (halt == Halt::kSignal && !whole && !reached) return stopped();
    end_of_epoch(whole);
    if (whole) call_back("after_epoch", [this](Callback& callback) { callback.after_epoch(*this); });
    session_.sync_buffers(model_);
    const std::optional<double> before = progress_.best;
    const bool halts = reached || halt == Halt::kMaxTime || halt == Halt::kCallback;
    progress_.due.test = is_test_due(halts || !stop_reason_.empty());
    progress_.due.within_epoch = false;
    if (halt == Halt::kSignal) return stopped();
    if (progress_.due.test && !test_epoch()) return stopped();
    ends_here_ = !stop_reason_.empty();
    save(progress_.best != before);
  }
  if (!stop_reason_.empty())
    console_.line(
        base::str(stop_reason_, " The run ends at epoch ", shown_epoch(), ", step ", progress_.step, "."));
  if (halt == Halt::kMaxTime && progress_.epoch < options_.epochs)
    console_.line(base::str("The ", base::duration_text_whole(options_.max_seconds),
                            " of --max-time are over at epoch ", progress_.epoch + 1, ", step ",
                            progress_.step, ". --resume with a longer --max-time continues the run."));
  return end();
}

bool Training::is_test_due(bool last) const {
  if (test_ == nullptr || progress_.tested == progress_.step) return false;
  return last || progress_.epoch == options_.epochs || progress_.epoch % options_.test_every_epochs == 0;
}

bool Training::finish_due() {
  if (test_ == nullptr) progress_.due.test = false;
  if (progress_.due.within_epoch) return true;  // see finish_due_within_epoch()
  if (stop_reason_.empty()) stop_reason_ = progress_.due.stop;
  if (!progress_.due.test && progress_.due.stop.empty()) return true;
  const std::optional<double> before = progress_.best;
  if (progress_.due.test) {
    console_.line("A test was due where the run was stopped: it comes first.");
    if (!test_epoch()) return false;
  }
  ends_here_ = !stop_reason_.empty();
  std::string input = progress_.input;  // the state of the data, which the next epoch compares
  save(progress_.best != before);
  progress_.input = std::move(input);
  return true;
}

// Gives callbacks their state and tensors back, the latter with the callback's own names.
void Training::load_callbacks() {
  call_back("load", [this](Callback& callback) {
    const auto state = progress_.callbacks.find(callback.name());
    if (state != progress_.callbacks.end()) callback.load(state->second);
  });
  progress_.callbacks.clear();
  std::set<std::string> strangers;
  for (const auto& [name, tensor] : restored_tensors_) strangers.insert(name);
  call_back("load_tensors", [&](Callback& callback) {
    const std::string prefix = training_detail::prefix_of(callback);
    NamedValues own;
    for (const auto& [name, tensor] : restored_tensors_) {
      if (!base::starts_with(name, prefix)) continue;
      own.emplace_back(name.substr(prefix.size()), tensor);
      strangers.erase(name);
    }
    if (!own.empty()) callback.load_tensors(own);
  });
  if (!strangers.empty())
    base::warn("the checkpoint has tensors of callbacks that this run does not have, such as ",
               *strangers.begin(), ": it continues without them, from the weights in model.safetensors");
  restored_tensors_.clear();
}

NamedValues Training::callback_tensors() const {
  NamedValues tensors;
  call_back("tensors", [&](const Callback& callback) {
    for (const auto& [name, tensor] : callback.tensors())
      tensors.emplace_back(training_detail::prefix_of(callback) + name, tensor);
  });
  return tensors;
}

void Training::save(bool best) {
  saved_ = base::monotonic_seconds();
  saved_at_ = session_.steps();
  call_back("before_reading", [this](Callback& callback) { callback.before_reading(*this); });
  write_checkpoints(best);
  call_back("after_reading", [this](Callback& callback) { callback.after_reading(*this); });
}

void Training::write_checkpoints(bool best) {
  session_.sync("checkpoint");  // all processes launch what the leader reads
  if (!session_.is_leader()) return;
  progress_.seconds = run_seconds();
  call_back("state", [this](const Callback& callback) {
    if (std::string state = callback.state(); !state.empty())
      progress_.callbacks[callback.name()] = std::move(state);
  });
  progress_.due.stop = ends_here_ ? "" : stop_reason_;
  progress_.input = train_.state(session_, data_epoch(), train_.batches_of(data_epoch(), progress_.batch));
  sessions::Snapshot snapshot =
      sessions::take_snapshot(session_.backend(), model_, optimizers(), progress_, callback_tensors());
  snapshot.files = steps_.files;
  // `last` is written after the others: a run that continues from it has them all.
  std::vector<std::string> folders;
  if (best) folders.push_back(folder("best"));
  await_checkpoint();
  if (top_ && progress_.value) {
    // A displaced checkpoint is removed once the better one is on the disk.
    base::value_or_throw(top_->remove_displaced());
    if (const auto top = top_->add(*progress_.value, progress_.step)) folders.push_back(folder(top->c_str()));
  }
  folders.push_back(folder("last"));
  writing_ = folders;
  progress_.value.reset();
  base::value_or_throw(writer_.write(std::move(snapshot), std::move(folders)));
}

void Training::await_checkpoint() {
  const std::vector<std::string> folders = std::exchange(writing_, {});
  const base::Status written = writer_.wait();
  if (written) {
    saved_folders_.insert(folders.begin(), folders.end());
    return;
  }
  if (written.error().code() != Code::kOutOfRange) throw_error(written.error());
  throw_error(Code::kOutOfRange, base::str(written.error().what(),
                                           ". Try a smaller --lr, --warmup-epochs, --clip-norm or --on-nan ",
                                           "skip. ", last_good()));
}

std::string Training::last_good() {
  if (!writing_.empty()) {
    // The first checkpoint may still be on its way.
    const std::vector<std::string> folders = std::exchange(writing_, {});
    if (writer_.wait()) saved_folders_.insert(folders.begin(), folders.end());
  }
  if (has_checkpoint("last")) return base::str("The last good checkpoint is ", shown("last"), ".");
  return session_.is_leader() ? "There is no checkpoint yet." : "Process 0 has the checkpoints.";
}

void Training::stop(const std::string& reason) {
  if (stop_reason_.empty()) stop_reason_ = reason;
}

TrainResult Training::result_so_far() const {
  TrainResult result;
  result.steps = progress_.step;
  for (const metrics::Value& value : tested_.numbers) {
    result.values.emplace_back(value.name, train::shown(value));
    if (value.name == "accuracy") result.accuracy = train::shown(value);
  }
  result.best = progress_.best;
  if (steps_.monitor.name == "accuracy") result.best_accuracy = progress_.best.value_or(-1);
  result.loss = last_loss_;
  return result;
}

TrainResult Training::stopped() {
  const int signal = SignalGuard::pending();
  stopping_ = true;
  session_.sync_buffers(model_);
  session_.finish();
  save(false);
  await_checkpoint();
  deliver_logs(/*wait=*/true);
  end_mlflow("KILLED", 5);
  if (remote_) base::value_or_throw(remote_->finish());
  session_.barrier();
  console_.line(base::str(signal == SIGINT ? "Interrupted" : "Terminated", ": saved ", shown("last"),
                          " at epoch ", progress_.epoch + 1, ", step ", progress_.step,
                          ". Go on with --resume."));
  TrainResult result = result_so_far();
  result.exit_status = signal == SIGINT ? kInterrupted : kTerminated;
  return result;
}

bool Training::has_checkpoint(const char* name) const {
  if (saved_folders_.count(folder(name)) > 0) return true;
  if (!remote_) return !sessions::find_checkpoint(folder(name)).empty();
  return restored_from_ == options_.logdir && std::string_view(name) == "last";
}

std::string Training::shown_checkpoints() const {
  std::vector<std::string> all;
  for (const char* const name : {"last", "best"})
    if (has_checkpoint(name)) all.push_back(shown(name));
  if (all.empty()) return "Checkpoints: none, no step was done";
  return base::str("Checkpoints: ", base::join(all, " and "));
}

TrainResult Training::end() {
  deliver_logs(/*wait=*/true);
  await_checkpoint();
  if (metrics_) base::value_or_throw(metrics_->end());
  if (top_) base::value_or_throw(top_->remove_displaced());
  end_mlflow("FINISHED", 10);
  if (remote_) base::value_or_throw(remote_->finish());
  session_.barrier();  // the checkpoint is complete before any process ends
  call_back("end", [this](Callback& callback) { callback.end(*this); });
  TrainResult result = result_so_far();
  if (progress_.rated_epochs > 0)
    result.examples_per_second = progress_.global_rates / static_cast<double>(progress_.rated_epochs);
  const double seconds = run_seconds();
  console_.line(base::str("Total Train Time: ", base::duration_text_whole(seconds)));
  if (test_ != nullptr && progress_.best)
    console_.line(base::str(steps_.monitor.higher_is_better ? "Max " : "Min ",
                            text_of(steps_.monitor.name, *progress_.best, ": ")));
  if (progress_.skipped > 0) console_.line(base::str("Skipped Updates: ", progress_.skipped));
  console_.line(base::str("Avg. Global Rate: ", sessions::fixed(result.examples_per_second, 2),
                          " examples per second"));
  if (options_.fast_dev_run > 0)
    console_.line(base::str("The trial of ", result.steps, " steps", test_ ? " and their test" : "",
                            " went well; nothing of it is kept."));
  else
    console_.line(base::str(shown_checkpoints(), "; metrics: ", shown("metrics.csv"),
                            "; curves: tensorboard --logdir ", options_.logdir));
  if (test_ != nullptr && options_.target_accuracy > 0 && result.best_accuracy < options_.target_accuracy) {
    console_.line(base::str("The target accuracy of ", sessions::fixed(options_.target_accuracy, 2),
                            progress_.best ? "% was missed." : "% was missed: no test has measured any."));
    result.exit_status = kTargetMissed;
  }
  nlohmann::json summary = {
      {"event", "end"},
      {"steps", result.steps},
      {"skipped_updates", progress_.skipped},
      {"seconds", seconds},
      {"monitor", steps_.monitor.name},
      {"best", progress_.best ? nlohmann::json(*progress_.best) : nlohmann::json()},
      {"examples_per_second", result.examples_per_second},
      {"checkpoint", has_checkpoint("last") ? nlohmann::json(shown("last")) : nlohmann::json()},
      {"exit_status", result.exit_status}};
  console_.json(base::with_json_texts(summary).dump());
  return result;
}

}  // namespace sluice::train
