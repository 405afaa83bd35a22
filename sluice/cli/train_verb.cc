// sluice train
#include <charconv>
#include <cmath>
#include <memory>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/error.h"
#include "sluice/base/strings.h"
#include "sluice/cli/config.h"
#include "sluice/cli/no_effect.h"
#include "sluice/cli/train_flags.h"
#include "sluice/cli/verbs.h"
#include "sluice/data/shards/urls.h"
#include "sluice/session/device_list.h"
#include "sluice/train/options.h"

namespace sluice::cli {
namespace {

using train::TrainOptions;

template <typename T>
std::vector<T> numbers(const std::string& flag, std::string text) {
  std::vector<T> result;
  if (base::starts_with(text, "[") && base::ends_with(text, "]")) text = text.substr(1, text.size() - 2);
  for (const std::string& part : base::split(text, ',')) {
    const std::string_view number = base::trim(part);
    if (number.empty()) continue;
    T value{};
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size())
      throw Usage(base::str(flag, " takes numbers separated by commas, not \"", text, "\""));
    result.push_back(value);
  }
  return result;
}

// Returns the texts before and after an equals sign.
std::pair<std::string, std::string> divided(const std::string& text, std::size_t equals, const char* flag,
                                            const char* expected) {
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw Usage(base::str(flag, " ", text, ": expected ", expected));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Parses --mix SHARDS=NUMBER and --mix-from STEP=SHARE,SHARE.
void choose_mixture(const TrainFlags& flags, TrainOptions& options) {
  for (const std::string& text : flags.mix) {
    const char* expected = "SHARDS=NUMBER, such as 'photos-*.tar=0.7'";
    const auto [shards, number] = divided(text, text.rfind('='), "--mix", expected);
    const auto amount = numbers<double>("--mix", number);
    if (amount.size() != 1) throw Usage(base::str("--mix ", text, ": expected ", expected));
    options.mix.push_back({shards, amount.front()});
  }
  for (const std::string& text : flags.mix_from) {
    const char* expected = "STEP=SHARE,SHARE…, such as 10000=0.5,0.5";
    const auto [step, shares] = divided(text, text.find('='), "--mix-from", expected);
    const auto number = numbers<std::int64_t>("--mix-from", step);
    if (number.size() != 1) throw Usage(base::str("--mix-from ", text, ": expected ", expected));
    options.mix_from.push_back({number.front(), numbers<double>("--mix-from", shares)});
  }
}

// Parses --test SHARDS and --test NAME=SHARDS.
void choose_tests(const TrainFlags& flags, TrainOptions& options) {
  for (const std::string& text : flags.test) {
    const std::size_t equals = text.find('=');
    const bool named = equals != std::string::npos && text.find_first_of("/.:{*@") > equals;
    if (named)
      options.more_tests.push_back({text.substr(0, equals), text.substr(equals + 1)});
    else
      options.test = text;  // the last one wins, as with other flags
  }
}

// Parses --devices and --device-ids: a number of devices, or a list. `source` is the origin of --devices'
// value: the flag, or an environment variable.
void choose_devices(const TrainFlags& flags, const char* source, TrainOptions& options) {
  try {
    sessions::DeviceList list = sessions::parse_devices(source, flags.devices);
    const std::vector<int> ids = sessions::parse_device_ids("--device-ids", flags.device_ids);
    if (!ids.empty()) list = {static_cast<int>(ids.size()), ids};
    options.devices = list.count;
    options.device_ids = list.ids;
  } catch (const Error& error) {
    throw Usage(error.what());
  }
}

// Returns a default as the run's configuration, which is part of checkpoints, shows it.
std::string default_text(train::OptimizerKind optimizer) { return train::name_of(optimizer); }
std::string default_text(bool on) { return on ? "true" : "false"; }
std::string default_text(double value) { return base::str(value); }
std::string default_text(std::int64_t value) { return std::to_string(value); }
std::string default_text(const std::vector<double>& values) { return base::join(values, ","); }

// Uses the recipe of the task for flags that were not given.
void choose_recipe(CLI::App& app, TrainOptions& options) {
  if (options.task == train::Task::kImages) return;
  TrainOptions usual;
  usual.task = options.task;
  train::set_language_recipe(usual);
  const auto take = [&](const char* flag, auto TrainOptions::*value) {
    if (app.count(flag) > 0) return;
    options.*value = usual.*value;
    app.get_option(flag)->default_str(default_text(usual.*value));
  };
  take("--optimizer", &TrainOptions::optimizer);
  const bool has_betas =
      options.optimizer == train::OptimizerKind::kAdam || options.optimizer == train::OptimizerKind::kAdamW;
  if (has_betas) take("--betas", &TrainOptions::betas);
  take("--lr", &TrainOptions::lr);
  take("--weight-decay", &TrainOptions::weight_decay);
  take("--no-decay", &TrainOptions::no_decay);
  if (app.count("--clip-value") == 0) take("--clip-norm", &TrainOptions::clip_norm);
  if (app.count("--warmup-steps") + app.count("--warmup-tokens") == 0)
    take("--warmup-epochs", &TrainOptions::warmup_epochs);
  take("--batch-size", &TrainOptions::batch_size);
  take("--epochs", &TrainOptions::epochs);
}

// Returns the value of a flag that also takes 2e9.
std::int64_t whole_number(const char* flag, double number) {
  constexpr double kMaxNumber = 1LL << 53;  // whole numbers that a double can hold
  if (!(number >= 0 && number <= kMaxNumber) || number != std::floor(number))
    throw Usage(base::str(flag, " takes a whole number, such as 2e9, not ", number));
  return static_cast<std::int64_t>(number);
}

void finish(CLI::App& app, TrainFlags& flags) {
  const std::set<std::string> on_line = given_flags(app);
  const std::set<std::string> of_environment = apply_environment(app);
  if (!flags.config.empty()) apply_config(app, flags.config);
  if (flags.allow_pipe) data::allow_pipe_in_lists();
  TrainOptions& options = flags.options;
  if (app.count("--resume") > 0 && (options.resume.empty() || options.resume == "true"))
    options.resume = "auto";
  if (app.count("--mlflow") > 0 && (options.mlflow.empty() || options.mlflow == "true")) {
    const auto uri = base::environment("MLFLOW_TRACKING_URI");
    if (!uri)
      throw Usage("--mlflow without a value needs MLFLOW_TRACKING_URI; or give the server: --mlflow URI");
    options.mlflow = *uri;
  }
  if (!options.mlflow.empty() && app.count("--mlflow-experiment") == 0)
    options.mlflow_experiment =
        base::environment("MLFLOW_EXPERIMENT_NAME").value_or(options.mlflow_experiment);
  options.mean = numbers<float>("--mean", flags.mean);
  options.deviation = numbers<float>("--std", flags.deviation);
  options.color_jitter = numbers<double>("--color-jitter", flags.color_jitter);
  options.rand_augment = numbers<std::int64_t>("--rand-augment", flags.rand_augment);
  options.betas = numbers<double>("--betas", flags.betas);
  choose_recipe(app, options);
  if (!flags.max_time.empty()) {
    const auto span = base::parse_span(flags.max_time, "--max-time");
    if (!span) throw Usage(span.error().what());
    options.max_seconds = *span;
  }
  options.max_tokens = whole_number("--max-tokens", flags.max_tokens);
  options.warmup_tokens = whole_number("--warmup-tokens", flags.warmup_tokens);
  options.decay_tokens = whole_number("--decay-tokens", flags.decay_tokens);
  choose_devices(flags, of_environment.count("--devices") > 0 ? "SLUICE_DEVICES" : "--devices", options);
  choose_mixture(flags, options);
  choose_tests(flags, options);
  if (app.count("--cpu-kernels") > 0) options.cpu_kernels = flags.cpu_kernels;
  if (app.count("--strict") > 0) options.strict = flags.strict;
  if (app.count("--detect-anomaly") > 0) options.detect_anomaly = flags.detect_anomaly;
  if (app.count("--exact") > 0) options.exact = flags.exact;
  if (const std::string idle = flags_without_effect(app, options, on_line, of_environment); !idle.empty())
    throw Usage(idle);
  options.config = app.config_to_str(/*default_also=*/true);
  try {
    train::check(options);
  } catch (const Error& error) {
    throw Usage(error.what());
  }
}

}  // namespace

Verb train_verb() {
  struct State {
    TrainFlags flags;
    CLI::App* app = nullptr;
  };
  auto state = std::make_shared<State>();
  return {.name = "train",
          .help = "Train a model on shards or token files, with evaluation and checkpoints",
          .footer =
              "A line's Rate and GlobalRate are examples a second of one replica: the moving average from "
              "line to "
              "line, and the mean since the epoch began. The curves examples/sec and Global Rate are of all "
              "replicas "
              "(docs/training.md).\n"
              "Exit status: 0 done, 1 failed, 2 wrong usage, 21 target accuracy missed, 130 interrupted, 143 "
              "terminated.",
          .add_flags =
              [state](CLI::App& app) {
                state->app = &app;
                app.option_defaults()->take_last();  // the last of repeated flags wins
                add_flags(app, train_flags(state->flags));
              },
          .run =
              [state] {
                finish(*state->app, state->flags);
                return train::train(state->flags.options).exit_status;
              }};
}

}  // namespace sluice::cli
