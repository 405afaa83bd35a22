// Flags from the environment and from a TOML file.
#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>

namespace sluice::cli {

// Sets the flags of a verb that are not on the command line from environment variables (docs/environment.md).
// Returns these flags. Throws Usage for a value that the flag does not take.
std::set<std::string> apply_environment(CLI::App& verb);

// Sets the options of `verb` that are not on the command line from a TOML file. Keys are the flags' long
// names without dashes in front (toml_key), at the top or in a table [verb]. Throws Usage for: a key that is
// no flag, naming the nearest one; a value that the flag does not take, naming its line; and a program that
// would be run (the path of a plugin, a `pipe:` among shards) if the command line has no --trust-config.
void apply_config(CLI::App& verb, const std::string& path);

// Throws Usage if there is no file at the path that a TOML reader could open.
void check_toml_file(const std::string& path);

}  // namespace sluice::cli
