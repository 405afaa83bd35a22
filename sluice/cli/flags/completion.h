// The scripts that make a shell complete the program's verbs, flags and values.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace sluice::cli {

// Return a script for the shell, generated from the program's verbs and flags.
std::string bash_completion(const CLI::App& program);
std::string zsh_completion(const CLI::App& program);
std::string fish_completion(const CLI::App& program);

}  // namespace sluice::cli
