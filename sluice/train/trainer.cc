#include "sluice/train/trainer.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <set>

#include "sluice/base/file.h"
#include "sluice/base/log.h"
#include "sluice/base/number.h"
#include "sluice/base/quantity.h"
#include "sluice/cloud/listen.h"
#include "sluice/data/memory.h"
#include "sluice/metrics/names.h"
#include "sluice/models/eval_mode.h"
#include "sluice/models/models.h"
#include "sluice/train/classification.h"
#include "sluice/train/evaluate.h"
#include "sluice/train/language/language_task.h"
#include "sluice/train/option_checks.h"
#include "sluice/train/predictions.h"
#include "sluice/train/token_counts.h"
#include "sluice/train/training.h"

namespace sluice::train {
namespace trainer_detail {

constexpr const char* kPatienceNeedsTest =
    "--patience counts tests, and there is no test set: give one with --test";

// Whether the options have a test set.
bool has_test(const TrainOptions& options) {
  return options.fake_data ? options.test_size > 0 : !options.test.empty();
}

// Checks the names of the test sets after the first one: pairs of a name and anything.
template <typename Named>
void check_names(const Named& sets, bool has_first) {
  std::set<std::string> seen;
  for (const auto& [name, set] : sets) {
    const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
    if (name.empty() || !std::all_of(name.begin(), name.end(), is_plain) || !seen.insert(name).second)
      throw_error(Code::kInvalidArgument,
                  base::str("the test set '", name,
                            "': expected a name of letters, digits, _ and -, another ", "one for each set"));
    if (!has_first)
      throw_error(Code::kInvalidArgument,
                  base::str("the test set '", name, "' is given, but the first test set, ",
                            "which has no name, is missing"));
  }
}

// Checks the random changes of images.
void check_changes(const TrainOptions& options) {
  const auto& jitter = options.color_jitter;
  bool senseless = !jitter.empty() && jitter.size() != 4;
  for (size_t i = 0; i < jitter.size(); ++i)
    senseless |= !(jitter[i] >= 0 && (i == 3 ? jitter[i] <= 0.5 : jitter[i] < 1e6));
  if (senseless)
    throw_error(
        Code::kInvalidArgument,
        base::str("--color-jitter takes four numbers of 0 or more, brightness,contrast,saturation,hue, and ",
                  "a hue of at most 0.5, such as 0.4,0.4,0.4,0.1, not ", base::join(jitter, ",")));
  const auto& augment = options.rand_augment;
  if (!augment.empty() &&
      (augment.size() != 2 || augment[0] < 1 || augment[0] > 100 || augment[1] < 0 || augment[1] > 30))
    throw_error(
        Code::kInvalidArgument,
        base::str("--rand-augment takes 1 to 100 operations and a magnitude of 0 to 30, such as 2,9, not ",
                  base::join(augment, ",")));
  if (!(options.auto_contrast >= 0 && options.auto_contrast <= 1))
    throw_error(Code::kInvalidArgument,
                base::str("--auto-contrast takes a share of 0 to 1, not ", options.auto_contrast));
}

// Checks the options of the weights' update.
void check_recipe(const TrainOptions& options) {
  check_choice("--optimizer", options.optimizer);
  check_choice("--lr-schedule", options.lr_schedule);
  check_choice("--on-nan", options.on_nan);
  check_recipe_numbers(options);
  const auto& betas = options.betas;
  const auto is_beta = [](double beta) { return beta >= 0 && beta < 1; };
  if (!betas.empty() && !(betas.size() == 2 && is_beta(betas[0]) && is_beta(betas[1])))
    throw_error(Code::kInvalidArgument,
                base::str("--betas takes two numbers of 0 or more and below 1, such as 0.9,0.95, not ",
                          base::join(betas, ",")));
  if (!(options.eps >= 0))
    throw_error(Code::kInvalidArgument, base::str("--eps must be 0 or more, not ", options.eps));
  if (options.nesterov && !(options.momentum > 0))
    throw_error(
        Code::kInvalidArgument,
        base::str("--nesterov looks ahead by the momentum, which must be above 0, not ", options.momentum));
  if (!(options.clip_norm >= 0 && options.clip_value >= 0))
    throw_error(Code::kInvalidArgument, base::str("--clip-norm and --clip-value must be 0 or more, not ",
                                                  options.clip_norm, " and ", options.clip_value));
  if (options.clip_norm > 0 && options.clip_value > 0)
    throw_error(Code::kInvalidArgument,
                "--clip-norm and --clip-value both cut the gradients: give one of them");
  const auto check_one = [](const char* flag, const char* what, double epochs, int64_t steps,
                            int64_t tokens) {
    if ((epochs >= 0) + (steps > 0) + (tokens > 0) > 1)
      throw_error(Code::kInvalidArgument,
                  base::str(flag, "-epochs, ", flag, "-steps and ", flag, "-tokens say how long the ", what,
                            " is: give one of them"));
  };
  check_one("--warmup", "warm-up", options.warmup_epochs, options.warmup_steps, options.warmup_tokens);
  check_one("--decay", "decay", options.decay_epochs, options.decay_steps, options.decay_tokens);
}

void check_frozen(const TrainOptions& options) {
  at_least("--unfreeze-epoch", options.unfreeze_epoch, 0);
  if (options.unfreeze_epoch == 1)
    throw_error(Code::kInvalidArgument, "--unfreeze-epoch 1 is the first one: leave out --freeze");
  if (options.unfreeze_epoch > options.epochs && options.fast_dev_run == 0)
    throw_error(Code::kInvalidArgument,
                base::str("--unfreeze-epoch ", options.unfreeze_epoch,
                          " has no effect: the run ends after epoch ", options.epochs));
}

void check_averages(const TrainOptions& options) {
  if (!(options.ema >= 0 && options.ema < 1))
    throw_error(Code::kInvalidArgument,
                base::str("--ema takes a decay of 0 or more and below 1, such as 0.999, not ", options.ema));
  at_least("--swa-start", options.swa_start, 0);
  if (options.swa_start > options.epochs && options.fast_dev_run == 0)
    throw_error(Code::kInvalidArgument,
                base::str("--swa-start ", options.swa_start, " has no effect: the run ends after epoch ",
                          options.epochs));
  if (options.ema > 0 && options.swa_start > 0)
    throw_error(Code::kInvalidArgument,
                "--ema and --swa-start both say which average tests measure: give one of them");
}

// Checks the options of a run's length.
void check_length(const TrainOptions& options) {
  at_least("--epochs", options.epochs, 0);
  at_least("--steps-per-epoch", options.steps_per_epoch, 0);
  at_least("--max-steps", options.max_steps, 0);
  at_least("--max-tokens", options.max_tokens, 0);
  at_least("--warmup-steps", options.warmup_steps, 0);
  at_least("--warmup-tokens", options.warmup_tokens, 0);
  at_least("--decay-steps", options.decay_steps, 0);
  at_least("--decay-tokens", options.decay_tokens, 0);
  at_least("--test-every-epochs", options.test_every_epochs, 1);
  at_least("--test-every-steps", options.test_every_steps, 0);
  at_least("--patience", options.patience, 0);
  at_least("--save-top-k", options.save_top_k, 0);
  check_averages(options);
  check_frozen(options);
  if (!(options.min_delta >= 0))
    throw_error(Code::kInvalidArgument, base::str("--min-delta must be 0 or more, not ", options.min_delta));
  at_least("--limit-test-batches", options.limit_test_batches, 0);
  at_least("--overfit-batches", options.overfit_batches, 0);
  at_least("--fast-dev-run", options.fast_dev_run, 0);
  at_least("--summary", options.summary, 0);
  if (options.fast_dev_run > 0 && !options.resume.empty())
    throw_error(Code::kInvalidArgument, "--fast-dev-run is a run of its own, which resumes nothing");
  const int64_t whole = options.overfit_batches;
  if (whole > 0 && whole % options.accumulate != 0)
    throw_error(Code::kInvalidArgument, base::str("--overfit-batches ", whole,
                                                  " is no multiple of --accumulate ", options.accumulate));
}

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
    options.save_minutes = 0;
    options.target_accuracy = 0;
    options.patience = options.save_top_k = 0;
    options.mlflow.clear();
  }
  return options;
}

// Checks what can be checked without data or device. `own_sets`: the data does not come from the options.
void check_options(const TrainOptions& options, bool named, bool own_sets = false) {
  check_choice("--task", options.task);
  check_choice("--long-documents", options.long_documents);
  if (named && is_language(options.task)) {
    check_language(options);
    named = false;
    own_sets = true;
  }
  const auto presets = models::language_presets();
  if (named && std::find(presets.begin(), presets.end(), options.model) != presets.end())
    throw_error(Code::kInvalidArgument,
                base::str(options.model, " is a language model: give --task clm or --task mlm"));
  if (named && options.model.empty())
    throw_error(Code::kInvalidArgument, base::str("the model is missing: give it with --model (",
                                                  base::join(models::names(), ", "), ")"));
  const auto known = models::names();
  // create() has the message.
  if (named && std::find(known.begin(), known.end(), options.model) == known.end())
    models::create(options.model, {});
  if (named && options.recompute && options.model != "transformer")
    models::create(options.model, {.recompute = true});  // create() has the message
  if (!own_sets && !options.fake_data && options.train.empty() && options.mix.empty())
    throw_error(Code::kInvalidArgument,
                "no training data: give shards with --train, a mixture with --mix, or --fake-data");
  if (!options.train.empty() && !options.mix.empty())
    throw_error(Code::kInvalidArgument, "--train and --mix both say what to train on: give one of them");
  if (!options.mix.empty() && options.original_workers > 0)
    throw_error(Code::kInvalidArgument, "--original-workers knows no mixture: leave it or --mix out");
  check_names(options.more_tests, !options.test.empty());
  if (!own_sets && options.classes < 1)
    throw_error(Code::kInvalidArgument, "the number of classes is missing: give it with --classes");
  at_least("--batch-size", options.batch_size, 1);
  at_least("--random-resized-crop", options.random_resized_crop, 0);
  const bool mixes = options.mixup != 0 || options.cutmix != 0;
  if (!(options.mixup >= 0 && options.cutmix >= 0) || (mixes && options.fake_data))
    throw_error(Code::kInvalidArgument,
                "--mixup and --cutmix take a number above 0, such as 0.2, and need shards (no --fake-data)");
  check_changes(options);
  if (options.random_resized_crop > 0 && (options.crop > 0 || options.resize > 0))
    throw_error(Code::kInvalidArgument,
                "--random-resized-crop stands for --resize and --crop: leave those out");
  at_least("--global-batch-size", options.global_batch_size, 0);
  at_least("--test-batch-size", options.test_batch_size, 0);
  at_least("--epoch-samples", options.epoch_samples, 0);
  at_least("--accumulate", options.accumulate, 1);
  check_data_numbers(options);
  check_length(options);
  check_recipe(options);
  at_least("--log-steps", options.log_steps, 1);
  at_least("--save-steps", options.save_steps, 0);
  at_least("--log-images", options.log_images, 0);
  if (!options.mlflow.empty()) {
    base::value_or_throw(check_mlflow_uri(options.mlflow));
    base::value_or_throw(check_mlflow_secret(options.mlflow, mlflow_authorization()));
  }
  if (!options.mlflow.empty() && options.mlflow_experiment.empty())
    throw_error(Code::kInvalidArgument, "--mlflow-experiment is empty: expected the name of an experiment");
  if (!(options.save_minutes >= 0))
    throw_error(Code::kInvalidArgument,
                base::str("--save-minutes must be 0 or more, not ", options.save_minutes));
  at_least("--devices", options.devices, 0);
  at_least("--check-replicas", options.check_replicas, 0);
  for (const auto& [port, what] : {std::pair(&options.status_port, "--status-port"),
                                   std::pair(&options.profiler_port, "--profiler-port")})
    if (!port->empty()) base::value_or_throw(cloud::parse_listen_address(*port, what));
  check_choice("--device", options.device);
  check_choice("--remainder", options.remainder);
  check_choice("--on-error", options.on_error);
  check_choice("--mix-by", options.mix_by);
  check_choice("--precision", options.precision);
  check_choice("--log-workers", options.log_workers);
  if (options.channels != 1 && options.channels != 3)
    throw_error(Code::kInvalidArgument,
                base::str("--channels is 3 (colour) or 1 (grey), not ", options.channels));
  for (const auto* numbers : {&options.mean, &options.deviation})
    if (!numbers->empty() && static_cast<int64_t>(numbers->size()) != options.channels)
      throw_error(Code::kInvalidArgument, base::str("--mean and --std take one number for each of the ",
                                                    options.channels, " channels, not ", numbers->size()));
  profile_steps(options.profile);
  metrics::parse("--metrics", options.metrics, options.classes);
  check_schedule(options);
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
  module.to(session.device());
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
        train(options, /*training=*/true, rows_per_replica(options, session.replicas()), session.replicas()) {
    const int64_t test_rows = options.test_batch_size > 0 ? options.test_batch_size : train.rows();
    settle_tokens(train, options);
    choose_folder();
    if (trainer_detail::has_test(options))
      test.emplace(options, /*training=*/false, test_rows, session.replicas());
    for (const auto& [name, shards] : options.more_tests) {
      auto own = std::make_unique<TrainOptions>(options);
      own->test = shards;
      Input input(*own, /*training=*/false, test_rows, session.replicas());
      more_tests.push_back({name, std::move(own), std::move(input)});
    }
  }
  State(const TrainOptions& given, const std::function<Sets(int replicas)>& open)
      : State(given, trainer_detail::start_session(trainer_detail::settled(given)), open) {}
  State(const TrainOptions& given, const Session& started, const std::function<Sets(int replicas)>& open)
      : State(given, started, open(started.replicas())) {}
  State(const TrainOptions& given, const Session& started, const Sets& sets)
      : options(trainer_detail::settled(given)),
        session(started),
        train(options, /*training=*/true, sets.train, session.replicas()) {
    settle_tokens(train, options);
    choose_folder();
    if (sets.test != nullptr) test.emplace(options, /*training=*/false, sets.test, session.replicas());
    trainer_detail::check_names(sets.more_tests, sets.test != nullptr);
    for (const auto& [name, set] : sets.more_tests) {
      auto own = std::make_unique<TrainOptions>(options);
      Input input(*own, /*training=*/false, set, session.replicas());
      more_tests.push_back({name, std::move(own), std::move(input)});
    }
  }
  void choose_folder() {
    if (options.fast_dev_run == 0) return;
    trial.emplace(base::value_or_throw(base::TemporaryDirectory::create("sluice-trial")));
    options.logdir = trial->path();
  }

  TrainOptions options;
  Session session;
  Input train;
  std::optional<Input> test;
  std::vector<NamedTest> more_tests;
  std::vector<std::shared_ptr<Callback>> callbacks;
  std::optional<base::TemporaryDirectory> trial;  // the log folder of --fast-dev-run
};

Trainer::Trainer(const TrainOptions& options) {
  trainer_detail::check_options(options, /*named=*/false);
  state_ = std::make_unique<State>(options);
  add_callbacks();
}
Trainer::Trainer(const TrainOptions& options, Sets sets)
    : Trainer(options, [&](int /*replicas*/) { return std::move(sets); }) {}
Trainer::Trainer(const TrainOptions& options, const std::function<Sets(int replicas)>& open) {
  trainer_detail::check_options(options, /*named=*/false, /*own_sets=*/true);
  state_ = std::make_unique<State>(options, open);
  add_callbacks();
}
void Trainer::add_callbacks() {
  const TrainOptions& options = state_->options;
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
  if (!state_->test) throw_error(Code::kInvalidArgument, trainer_detail::kPatienceNeedsTest);
  add(std::make_shared<EarlyStopping>(
      EarlyStoppingOptions{.patience = options.patience, .min_delta = options.min_delta}));
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
  return Training(state_->options, state_->session, state_->train, state_->test ? &*state_->test : nullptr,
                  state_->more_tests, module, steps, state_->callbacks)();
}

LearningRates Trainer::find_learning_rate(torch::nn::Module& module, const Steps& steps,
                                          const LearningRateSweep& sweep) {
  trainer_detail::check_steps(steps, state_->options, /*has_test=*/false);
  return Training(state_->options, state_->session, state_->train, nullptr, state_->more_tests, module, steps,
                  state_->callbacks)
      .sweep_learning_rates(sweep);
}

LearningRates Trainer::find_for(torch::nn::Module& model, const Forward& forward,
                                const LearningRateSweep& sweep) {
  return find_learning_rate(model, image_classification(state_->options, forward), sweep);
}

void Trainer::add(std::shared_ptr<Callback> callback) {
  for (const auto& other : state_->callbacks)
    if (other->name() == callback->name())
      throw_error(Code::kInvalidArgument,
                  base::str("the trainer has a callback called '", callback->name(), "' already"));
  state_->callbacks.push_back(std::move(callback));
}

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
  module.to(session.device());
  const models::EvalMode eval(module);
  session.sync_buffers(module);
  return base::value_or_throw(write_predictions(session, steps, session.feed(set, {.epoch = 0}),
                                                state_->options.precision == Precision::kBf16, path,
                                                shard_size));
}

ProfileSteps profile_steps(const std::string& text) {
  if (text.empty()) return {};
  const size_t colon = text.find(':');
  const auto number = [&](size_t from, size_t count) {
    return base::number_of<int64_t>(std::string_view(text).substr(from, count)).value_or(0);
  };
  ProfileSteps steps;
  if (colon != std::string::npos) steps = {number(0, colon), number(colon + 1, text.size())};
  if (steps.first < 1 || steps.end <= steps.first)
    throw_error(
        Code::kInvalidArgument,
        base::str("--profile ", text,
                  ": expected FIRST:END with 1 <= FIRST < END, such as 10:13 for the steps 10, 11, 12"));
  return steps;
}

void check(const TrainOptions& options) {
  trainer_detail::check_options(options, /*named=*/true);
  check_machine(options);
  if (!is_language(options.task)) check_classes(options);
  if (options.patience > 0 && !trainer_detail::has_test(options))
    throw_error(Code::kInvalidArgument, trainer_detail::kPatienceNeedsTest);
  if (options.find_batch_size && (options.find_lr || options.fast_dev_run > 0))
    throw_error(Code::kInvalidArgument,
                "--find-batch-size, --find-lr and --fast-dev-run are runs of their own: one at a time");
  if (options.find_batch_size && (options.global_batch_size > 0 || !options.shapes.empty()))
    throw_error(Code::kInvalidArgument, base::str("--find-batch-size tries sizes of --batch-size, which ",
                                                  options.shapes.empty() ? "--global-batch-size" : "--shapes",
                                                  " decides: leave it out"));
}

namespace trainer_detail {

TrainResult train_images(const TrainOptions& options, const Callbacks& callbacks) {
  Trainer trainer(options);
  for (const auto& callback : callbacks) trainer.add(callback);
  torch::manual_seed(options.seed);
  auto model = models::create(options.model,
                              {options.classes, trainer.channels(), trainer.image_size(), options.recompute});
  if (!options.find_lr) return trainer.fit(model);
  trainer.find_learning_rate(model);
  return {};
}

TrainResult train_language(const TrainOptions& options, const Callbacks& callbacks) {
  // The rows of a batch depend on the number of replicas, which is known only once the device is open.
  std::optional<LanguageTask> task;
  TrainOptions own = options;
  own.weights.clear();  // the task has loaded them
  Trainer trainer(own, [&](int replicas) {
    task.emplace(options, rows_per_replica(options, replicas));
    return task->sets();
  });
  for (const auto& callback : callbacks) trainer.add(callback);
  if (!options.json && !options.quiet)
    for (const auto& [name, facts] : task->facts(trainer.session().replicas()))
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
