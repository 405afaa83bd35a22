// The whole command line as a list, for what is written from it: the shells' completion, and the page of the
// docs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace sluice::cli {

// The program or one of its verbs, with the words that lead to it: "", "train", "data pack".
struct Command {
  std::string path;
  const CLI::App* app;
};

// The program and the verbs that people see, each noun before its verbs.
std::vector<Command> commands(const CLI::App& program);
// The flags (not the positional arguments) and the positional arguments, in their order.
std::vector<const CLI::Option*> flags_of(const CLI::App& app);
std::vector<const CLI::Option*> positionals_of(const CLI::App& app);
// The long names with their dashes.
std::vector<std::string> long_names(const CLI::Option& option);
bool takes_value(const CLI::Option& option);
// f32, bf16 of an option whose type is "f32|bf16"; none of any other.
std::vector<std::string> choices_of(const CLI::Option& option);
// What an option's help says, and the unit that stands in brackets at its end.
std::pair<std::string, std::string> help_and_unit(const CLI::Option& option);

}  // namespace sluice::cli
