#include "sluice/train/trainer.h"

#include <algorithm>
#include <cstdio>

#include "sluice/base/files/file.h"
#include "sluice/base/log.h"
#include "sluice/data/memory.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/models/eval_mode.h"
#include "sluice/models/models.h"
#include "sluice/session/backend.h"
#include "sluice/train/classification.h"
#include "sluice/train/evaluation/evaluate.h"
#include "sluice/train/evaluation/predictions.h"
#include "sluice/train/input/token_counts.h"
#include "sluice/train/language/language_task.h"
#include "sluice/train/loop/training.h"
#include "sluice/train/recipe/recipe.h"
#include "sluice/train/run/run_plan.h"
#include "sluice/train/train_task.h"

namespace sluice::train {
namespace trainer_detail {

// Returns the options with the values that other options imply.
TrainOptions settled(TrainOptions options) {
  if (options.overfit_batches > 0)
    options.steps_per_epoch = options.overfit_batches / std::max<int64_t>(options.accumulate, 1);
  if (options.fast_dev_run > 0) {
    options.epochs = 1;
    options.steps_per_epoch = options.limit_test_batches = options.fast_dev_run;
    options.test_every_epochs = options.log_steps = 1;
    options.max_steps = options.max_tokens = options.save_steps = options.test_every_steps = 0;
    options.warmup_tokens = options.decay_tokens = 0;
    if (options.lr_schedule == LrSchedule::kWsd) {  // its parts are longer than such a run
      options.warmup_epochs = options.decay_epochs = -1;
      options.warmup_steps = options.decay_steps = 0;
    }
    options.save_minutes = options.test_every_minutes = 0;
    options.target_accuracy = 0;
    options.patience = options.save_top_k = 0;
    options.mlflow.clear();
  }
  return options;
}

// Sets the process's limits, before anything is read.
void set_memory_limits(const TrainOptions& options) {
  data::MemoryLimits& limits = data::memory_limits();
  limits.sample = static_cast<std::uint64_t>(options.max_sample) << 20;
  limits.readers = static_cast<std::uint64_t>(options.max_buffered) << 30;
  limits.pixels = options.max_pixels * 1'000'000;
}

Session start_session(const TrainOptions& options) {
  set_memory_limits(options);
  Options session;
  session.device = name_of(options.device);
  session.mesh = options.mesh;
  session.xla.plugin = options.plugin;
  session.xla.devices = options.devices;
  session.xla.device_ids = options.device_ids;
  session.xla.cpu_kernels = options.cpu_kernels;
  session.xla.detect_anomaly = options.detect_anomaly;
  session.xla.exact = options.exact;
  session.xla.strict = options.strict;
  session.status_port = options.status_port;
  session.profiler_port = options.profiler_port;
  Session started = start(session);
  if (options.device == DeviceKind::kXla) set_sync_batch_norm(options.sync_batch_norm);
  return started;
}

// Returns the rows of one replica's batch, which the mesh divides if there is one.
int64_t fitting_rows(const TrainOptions& options, const Session& session) {
  check_rows(options, session.backend().mesh());
  return rows_per_replica(options, session.shares());
}

void check_steps(const Steps& steps, const TrainOptions& options, bool has_test) {
  if (static_cast<bool>(steps.training_step) == static_cast<bool>(steps.updating_step))
    throw_error(Code::kInvalidArgument,
                "the steps of a training need a training_step or an updating_step, one of the two");
  if (steps.updating_step && options.accumulate > 1)
    throw_error(Code::kInvalidArgument, base::str("an updating_step updates with each batch: accumulate ",
                                                  options.accumulate, " is for a training_step"));
  if (steps.updating_step && !steps.configure_optimizers)
    throw_error(Code::kInvalidArgument,
                "an updating_step needs configure_optimizers, which says what it updates with");
  if (has_test && !steps.validation_step)
    throw_error(Code::kInvalidArgument,
                "there is a test set, but the steps have no validation_step: leave the set out, or say what "
                "is measured");
}

metrics::Values validated(Session& session, torch::nn::Module& module, const Steps& steps, Feed feed,
                          int64_t most, const TrainOptions& options) {
  if (!steps.validation_step)
    throw_error(Code::kInvalidArgument, "validate: the steps have no validation_step");
  session.place(module);
  const models::EvalMode eval(module);
  session.sync_buffers(module);
  return evaluate(
             session, steps, std::move(feed), most, options.precision == Precision::kBf16,
             [] { return false; }, [](int64_t) {})
      .values;
}

}  // namespace trainer_detail

struct Trainer::State {
  explicit State(const TrainOptions& given)
      : options(trainer_detail::settled(given)),
        session(trainer_detail::start_session(options)),
        train(options, /*training=*/true, trainer_detail::fitting_rows(options, session), session.shares()) {
    const int64_t test_rows = options.test_batch_size > 0
                                  ? rows_of_part("--test-batch-size", options.test_batch_size)
                                  : train.rows();
    settle_tokens(train, options);
    choose_folder();
    if (has_test(options)) test.emplace(options, /*training=*/false, test_rows, session.shares());
    for (const auto& [name, shards] : options.more_tests) {
      auto own = std::make_unique<TrainOptions>(options);
      own->test = shards;
      Input input(*own, /*training=*/false, test_rows, session.shares());
      more_tests.push_back({name, std::move(own), std::move(input)});
    }
  }
  State(const TrainOptions& given, const std::function<Sets(int replicas)>& open)
      : State(given, trainer_detail::start_session(trainer_detail::settled(given)), open) {}
  State(const TrainOptions& given, const Session& started, const std::function<Sets(int replicas)>& open)
      : State(given, started, open(started.shares())) {}
  State(const TrainOptions& given, const Session& started, const Sets& sets)
      : options(trainer_detail::settled(given)),
        session(started),
        train(options, /*training=*/true, sets.train, session.shares()) {
    settle_tokens(train, options);
    choose_folder();
    if (sets.test != nullptr) test.emplace(options, /*training=*/false, sets.test, session.shares());
    std::vector<std::string> names;
    for (const auto& [name, set] : sets.more_tests) names.push_back(name);
    check_test_names(names, sets.test != nullptr);
    for (const auto& [name, set] : sets.more_tests) {
      auto own = std::make_unique<TrainOptions>(options);
      Input input(*own, /*training=*/false, set, session.shares());
      more_tests.push_back({name, std::move(own), std::move(input)});
    }
  }
  void choose_folder() {
    if (options.fast_dev_run == 0) return;
    trial.emplace(base::value_or_throw(base::TemporaryDirectory::create("sluice-trial")));
    options.logdir = trial->path();
  }

  // Adds a callback, after the others.
  void add(std::shared_ptr<Callback> callback);
  // Adds the callbacks that the options ask for.
  void add_callbacks();
  RunSetup setup(torch::nn::Module& module, const Steps& steps, bool with_test) {
    return {options,    session, train, with_test && test ? &*test : nullptr,
            more_tests, module,  steps, callbacks};
  }

  TrainOptions options;
  Session session;
  Input train;
  std::optional<Input> test;
  std::vector<NamedTest> more_tests;
  std::vector<std::shared_ptr<Callback>> callbacks;
  std::optional<base::TemporaryDirectory> trial;  // the log folder of --fast-dev-run
};

void Trainer::State::add(std::shared_ptr<Callback> callback) {
  for (const auto& other : callbacks)
    if (other->name() == callback->name())
      throw_error(Code::kInvalidArgument,
                  base::str("the trainer has a callback called '", callback->name(), "' already"));
  callbacks.push_back(std::move(callback));
}

void Trainer::State::add_callbacks() {
  if (options.ema > 0)
    add(std::make_shared<WeightAverage>(
        WeightAverageOptions{.decay = options.ema, .warm_up = options.ema_warmup}));
  if (options.swa_start > 0)
    add(std::make_shared<WeightAverage>(
        WeightAverageOptions{.every_steps = 0, .from_epoch = static_cast<double>(options.swa_start - 1)}));
  if (!options.freeze.empty())
    add(std::make_shared<Freeze>(
        FreezeOptions{.names = options.freeze, .epochs = std::max<int64_t>(options.unfreeze_epoch - 1, 0)}));
  if (options.histograms) add(std::make_shared<Histograms>());
  if (options.patience == 0) return;
  if (!test) throw_error(Code::kInvalidArgument, kPatienceNeedsTest);
  add(std::make_shared<EarlyStopping>(
      EarlyStoppingOptions{.patience = options.patience, .min_delta = options.min_delta}));
}

Trainer::Trainer(const TrainOptions& options) {
  check_options(options, /*named=*/false);
  state_ = std::make_unique<State>(options);
  state_->add_callbacks();
}
Trainer::Trainer(const TrainOptions& options, Sets sets)
    : Trainer(options, [&](int /*replicas*/) { return std::move(sets); }) {}
Trainer::Trainer(const TrainOptions& options, const std::function<Sets(int replicas)>& open) {
  check_options(options, /*named=*/false, /*own_sets=*/true);
  state_ = std::make_unique<State>(options, open);
  state_->add_callbacks();
}
Trainer::~Trainer() = default;
Session& Trainer::session() { return state_->session; }
int64_t Trainer::channels() const { return state_->train.channels(); }
int64_t Trainer::image_size() const { return state_->train.image_size(); }

TrainResult Trainer::train(torch::nn::Module& model, const Forward& forward) {
  return fit(model, image_classification(state_->options, forward));
}

TrainResult Trainer::fit(torch::nn::Module& module, const Steps& steps) {
  trainer_detail::check_steps(steps, state_->options, state_->test.has_value());
  return Training(state_->setup(module, steps, /*with_test=*/true))();
}

LearningRates Trainer::find_learning_rate(torch::nn::Module& module, const Steps& steps,
                                          const LearningRateSweep& sweep) {
  trainer_detail::check_steps(steps, state_->options, /*has_test=*/false);
  return sweep_learning_rates(state_->setup(module, steps, /*with_test=*/false), sweep);
}

LearningRates Trainer::find_for(torch::nn::Module& model, const Forward& forward,
                                const LearningRateSweep& sweep) {
  return find_learning_rate(model, image_classification(state_->options, forward), sweep);
}

void Trainer::add(std::shared_ptr<Callback> callback) { state_->add(std::move(callback)); }

metrics::Values Trainer::validate(torch::nn::Module& module, const Steps& steps) {
  if (!state_->test)
    throw_error(Code::kInvalidArgument,
                "validate: the trainer has no test set; give it one, or validate one");
  return trainer_detail::validated(state_->session, module, steps, state_->test->feed(state_->session, 0, 0),
                                   state_->test->batches(), state_->options);
}

metrics::Values Trainer::validate(torch::nn::Module& module, const Steps& steps, const data::Dataset& set) {
  return trainer_detail::validated(state_->session, module, steps, state_->session.feed(set, {.epoch = 0}),
                                   -1, state_->options);
}

int64_t Trainer::predict(torch::nn::Module& module, const Steps& steps, const data::Dataset& set,
                         const std::string& path, int64_t shard_size) {
  if (!steps.predict_step) throw_error(Code::kInvalidArgument, "predict: the steps have no predict_step");
  Session& session = state_->session;
  session.place(module);
  const models::EvalMode eval(module);
  session.sync_buffers(module);
  return base::value_or_throw(write_predictions(session, steps, session.feed(set, {.epoch = 0}),
                                                state_->options.precision == Precision::kBf16, path,
                                                shard_size));
}

namespace trainer_detail {

TrainResult train_images(const TrainOptions& options, const Callbacks& callbacks) {
  Trainer trainer(options);
  for (const auto& callback : callbacks) trainer.add(callback);
  torch::manual_seed(options.seed);
  auto model = models::create(options.model, {options.classes, trainer.channels(), trainer.image_size(),
                                              recomputes(options, trainer.session().backend().mesh())});
  if (!options.find_lr) return trainer.fit(model);
  trainer.find_learning_rate(model);
  return {};
}

TrainResult train_language(const TrainOptions& options, const Callbacks& callbacks) {
  // The rows of a batch depend on the number of replicas, which is known only once the device is open.
  TrainOptions of_task = options;
  std::optional<LanguageTask> task;
  TrainOptions own = options;
  own.weights.clear();  // the task has loaded them
  Trainer trainer(own, [&](int replicas) {
    const Mesh devices = options.device == DeviceKind::kXla ? mesh() : Mesh();
    check_rows(options, devices);
    of_task.recompute = recomputes(options, devices);
    task.emplace(of_task, rows_per_replica(options, replicas));
    return task->sets();
  });
  for (const auto& callback : callbacks) trainer.add(callback);
  if (!options.json && !options.quiet)
    for (const auto& [name, facts] : task->facts(trainer.session().shares()))
      trainer.session().print(name, ": ", text::text_of(facts));
  if (!options.find_lr) return trainer.fit(task->model(), task->steps());
  trainer.find_learning_rate(*task->model(), task->steps());
  return {};
}

}  // namespace trainer_detail

TrainResult train_task(const TrainOptions& options, const Callbacks& callbacks) {
  return is_language(options.task) ? trainer_detail::train_language(options, callbacks)
                                   : trainer_detail::train_images(options, callbacks);
}

TrainResult train(const TrainOptions& options) {
  check(options);
  const TrainResult result = options.find_batch_size ? sweep_batch_sizes(options) : train_task(options, {});
  if (options.report && options.device == DeviceKind::kXla) std::printf("%s\n", metrics_report().c_str());
  return result;
}

}  // namespace sluice::train
