// Flags that somebody gave although they change nothing beside the others.
#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>

#include "sluice/train/options.h"

namespace sluice::cli {

// The long flags that were given so far, with their dashes.
std::set<std::string> given_flags(const CLI::App& verb);

// "" or what is wrong, one line for each flag of `sluice train` that was given and has no effect.
// `on_line`: those given on the command line. What a TOML file says may be idle because of the command line.
// `of_environment`: those that the environment gave, which is the same for many programs and may be idle.
std::string flags_without_effect(const CLI::App& verb, const train::TrainOptions& options,
                                 const std::set<std::string>& on_line,
                                 const std::set<std::string>& of_environment);

}  // namespace sluice::cli
