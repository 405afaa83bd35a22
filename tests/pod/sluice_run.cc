// The program with the verb `run` alone: it is built without LibTorch, under every sanitizer.
#include <cstdio>

#include "sluice/base/error.h"
#include "sluice/cli/run_verb.h"

int main(int argc, char** argv) {
  CLI::App program("sluice run, alone", "sluice");
  program.option_defaults()->always_capture_default();
  program.require_subcommand(1);
  sluice::cli::Action action;
  sluice::cli::add_run_verb(program, action);
  try {
    program.parse(argc, argv);
    return action();
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  } catch (const sluice::cli::Usage& error) {
    std::fprintf(stderr, "sluice: %s\n", error.what());
    return 2;
  } catch (const sluice::Error& error) {
    std::fprintf(stderr, "sluice: %s\n", error.what());
    return 1;
  }
}
