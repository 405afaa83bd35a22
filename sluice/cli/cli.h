// The one program `sluice`: noun and verb.
#pragma once

namespace sluice::cli {

// Runs the command line and returns the exit status: 0 done, 1 failed, 2 wrong usage, 21 target accuracy
// missed, 130 interrupted, 143 terminated. Errors are one line on standard error.
int run_command_line(int argc, char** argv);

}  // namespace sluice::cli
