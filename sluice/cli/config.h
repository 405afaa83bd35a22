// Flags from the environment and from a TOML file.
#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>

namespace sluice::cli {

// Gives a verb's flags that are not on the command line what the environment says (docs/environment.md).
// Returns those flags. Throws Usage for a value that the flag does not take.
std::set<std::string> apply_environment(CLI::App& verb);

// Gives the options of `verb` that the command line left out the values of a TOML file: keys are the flags'
// long names without dashes in front (toml_key), at the top or in a table [verb]. Throws Usage for a key that
// is no flag, with the nearest one, and for a value that the flag does not take, with its line; and for a
// program that would be run (the path of a plugin, a `pipe:` among shards) where the line has no
// --trust-config.
void apply_config(CLI::App& verb, const std::string& path);

// Throws Usage where there is no file that a TOML reader could open.
void check_toml_file(const std::string& path);

}  // namespace sluice::cli
