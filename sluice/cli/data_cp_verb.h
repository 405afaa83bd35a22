// `sluice data cp`.
#pragma once

#include <CLI/App.hpp>

namespace sluice::cli {

// Adds the verb to the noun; the exit status of a run goes to `exit_status`.
void add_data_cp(CLI::App& noun, int& exit_status);

}  // namespace sluice::cli
