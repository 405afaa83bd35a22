// Runs the program's command line over a list of verbs, with its name, its version and its exit status.
#pragma once

#include <vector>

#include "sluice/cli/verb.h"

namespace sluice::cli {

// Runs the command line and returns the exit status: 0 done, 1 failed, 2 wrong usage, 21 target accuracy
// missed, 130 interrupted, 143 terminated. An error is one line on standard error.
int run_program(const std::vector<Verb>& verbs, int argc, char** argv);

// Returns the verbs that need no LibTorch. The program `sluice` runs them itself and starts in milliseconds.
std::vector<Verb> plain_verbs();

}  // namespace sluice::cli
