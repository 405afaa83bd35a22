// The verb `sluice run`.
#pragma once

#include "sluice/cli/verbs.h"

namespace sluice::cli {

// Adds `run` with `run ls`, `attach`, `logs` and `stop` to the program; the chosen one sets the action.
void add_run_verb(CLI::App& program, Action& action);

}  // namespace sluice::cli
