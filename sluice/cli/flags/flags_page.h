// Generates docs/flags.md.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace sluice::cli {

// Returns the page: each verb with its arguments and flags, their types, defaults and units.
std::string flags_page(const CLI::App& program);

}  // namespace sluice::cli
