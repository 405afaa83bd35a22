// Finds flags that were given but change nothing, because of other flags.
#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>

#include "sluice/train/options.h"

namespace sluice::cli {

// Returns the long flags that were given so far, with their dashes.
std::set<std::string> given_flags(const CLI::App& verb);

// Returns one line for each flag of `sluice train` that was given and has no effect; "" if there is none.
// `on_line`: the flags of the command line; a flag of a TOML file may be overruled by them. `of_environment`:
// the flags that environment variables set; these serve many programs and may have no effect.
std::string flags_without_effect(const CLI::App& verb, const train::TrainOptions& options,
                                 const std::set<std::string>& on_line,
                                 const std::set<std::string>& of_environment);

}  // namespace sluice::cli
