// What a verb of the program looks like from the inside.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace sluice::cli {

// What the chosen verb does; its result is the exit status. It may throw sluice::Error (status 1) or Usage
// (2).
using Action = std::function<int()>;

// A mistake in the command line that CLI11 cannot see.
class Usage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What --plugin means wherever it is.
inline constexpr const char* kPluginHelp =
    "auto (a TPU if the machine has one, else a GPU, else the CPU), cpu, tpu, cuda or a path; empty: "
    "$SLUICE_PLUGIN, else auto";

// Each adds its verb to the program; when the verb is parsed it sets the action.
void add_train_verb(CLI::App& program, Action& action);
void add_export_verb(CLI::App& program, Action& action);
void add_devices_verb(CLI::App& program, Action& action);
void add_bench_verb(CLI::App& program, Action& action);
void add_compile_verb(CLI::App& program, Action& action);
// `command`: what stood behind --.
void add_estimate_verb(CLI::App& program, Action& action, std::vector<std::string> command);
// The process in which `compile` and `estimate` run libtpu; not for people.
void add_compile_worker(CLI::App& program, Action& action);

// Gives the options of `verb` that the command line left out the values of a TOML file: keys are the flags'
// long names without dashes in front, at the top or in a table [verb]. Throws Usage for a key that is no
// flag, with the nearest one.
// Gives a verb's flags that are not on the command line what the environment says (docs/environment.md).
// Returns those flags.
std::set<std::string> apply_environment(CLI::App& verb);
void apply_config(CLI::App& verb, const std::string& path);

// "--epochs" for "--epoch": the long flag of `app` nearest to an unknown one, or "".
std::string nearest_flag(const CLI::App& app, const std::string& flag);

}  // namespace sluice::cli
