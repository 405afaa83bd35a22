// The program `sluice-torch`: all verbs.
#pragma once

namespace sluice::cli {

// Runs the command line; its result is that of run_program (program.h).
int run_command_line(int argc, char** argv);

}  // namespace sluice::cli
