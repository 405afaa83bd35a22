// What makes a shell complete the program's verbs, flags and values.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace sluice::cli {

// A script for the shell, made from the program's verbs and flags.
std::string bash_completion(const CLI::App& program);
std::string zsh_completion(const CLI::App& program);
std::string fish_completion(const CLI::App& program);

}  // namespace sluice::cli
