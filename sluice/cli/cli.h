// The program `sluice-torch`: all verbs.
#pragma once

namespace sluice::cli {

// Runs the command line and returns the exit status, as run_program does (program.h).
int run_command_line(int argc, char** argv);

}  // namespace sluice::cli
