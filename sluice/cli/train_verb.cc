// sluice train
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "sluice/base/environment.h"
#include "sluice/base/error.h"
#include "sluice/cli/config.h"
#include "sluice/cli/flags/flag.h"
#include "sluice/cli/verbs.h"
#include "sluice/data/shards/urls.h"
#include "sluice/train/recipe/recipe.h"

namespace sluice::cli {
namespace {

using train::TrainOptions;

// The options, and what only the command line has.
struct TrainFlags {
  TrainOptions options;
  std::string config;
  bool trust_config = false, allow_pipe = false;
};

// Returns the rows of the options, and the command line's own.
std::vector<Flag> train_rows(TrainFlags& flags) {
  auto sections = train::option_sections(flags.options);
  sections.push_back(
      {Flag{"Data", "--allow-pipe", &flags.allow_pipe, "",
            "Let a list of shards (@file) run commands (pipe:…)"}
           .after("--train"),
       Flag{"Output", "--config", &flags.config, "",
            "Read any of these flags from this TOML file; the command line wins"}
           .after("--json"),
       Flag{"Output", "--trust-config", &flags.trust_config, "",
            "Let the file of --config name programs to run: a plugin's path, pipe: commands among shards"}});
  return base::in_help_order(std::move(sections));
}

// Uses the recipe of the task for flags that were not given: the values in which it differs from the
// defaults.
void choose_recipe(CLI::App& app, TrainOptions& options) {
  if (options.task == train::Task::kImages) return;
  TrainOptions plain, usual;
  plain.task = usual.task = options.task;
  train::set_language_recipe(usual);
  const std::vector<Flag> before = train::option_rows(plain), after = train::option_rows(usual);
  const auto is_given = [&](const std::string& flag) { return app.count(flag) > 0; };
  for (std::size_t i = 0; i < after.size(); ++i) {
    const std::string text = base::value_text(after[i]);
    if (text == base::value_text(before[i])) continue;
    const Flag row = train::option_rows(options)[i];  // depends on the values that were taken before
    const bool rivalled = std::any_of(row.rivals.begin(), row.rivals.end(), is_given);
    if (is_given(row.name) || rivalled || !row.in_recipe) continue;
    base::copy_value(after[i], row);
    app.get_option(row.name)->default_str(text);  // for the configuration that checkpoints keep
  }
}

// Throws Usage for flags that were given and change nothing. Environment variables serve many programs and
// may have no effect.
void refuse_idle_flags(const CLI::App& app, TrainOptions& options, const std::set<std::string>& on_line,
                       const std::set<std::string>& of_environment) {
  std::set<std::string> given = given_flags(app);
  for (const std::string& flag : of_environment) given.erase(flag);
  const std::string idle = base::flags_without_effect(train::option_rows(options), given, on_line);
  if (!idle.empty()) throw Usage(idle);
}

void finish(CLI::App& app, TrainFlags& flags) {
  const std::set<std::string> on_line = given_flags(app);
  const std::set<std::string> of_environment = apply_environment(app);
  if (!flags.config.empty()) apply_config(app, flags.config);
  if (flags.allow_pipe) data::allow_pipe_in_lists();
  TrainOptions& options = flags.options;
  if (!options.mlflow.empty() && app.count("--mlflow-experiment") == 0)
    options.mlflow_experiment =
        base::environment("MLFLOW_EXPERIMENT_NAME").value_or(options.mlflow_experiment);
  choose_recipe(app, options);
  refuse_idle_flags(app, options, on_line, of_environment);
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
                add_flags(app, train_rows(state->flags));
              },
          .run =
              [state] {
                finish(*state->app, state->flags);
                return train::train(state->flags.options).exit_status;
              }};
}

}  // namespace sluice::cli
