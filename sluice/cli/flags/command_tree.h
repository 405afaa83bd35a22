// The whole command line as a list, from which the shells' completion and docs/flags.md are written.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace sluice::cli {

// The program or one of its verbs. Its path is the words that lead to it: "", "train", "data pack".
struct Command {
  std::string path;
  const CLI::App* app;
};

// Returns the program and the verbs that users see, each noun before its verbs.
std::vector<Command> commands(const CLI::App& program);
// Return the flags without the positional arguments, and the positional arguments, in their order.
std::vector<const CLI::Option*> flags_of(const CLI::App& app);
std::vector<const CLI::Option*> positionals_of(const CLI::App& app);
// Returns the long names with their dashes.
std::vector<std::string> long_names(const CLI::Option& option);
bool takes_value(const CLI::Option& option);
// Returns f32 and bf16 for an option of the type "f32|bf16"; nothing for any other type.
std::vector<std::string> choices_of(const CLI::Option& option);
// Returns an option's help and the unit in brackets at its end, separately.
std::pair<std::string, std::string> help_and_unit(const CLI::Option& option);

}  // namespace sluice::cli
