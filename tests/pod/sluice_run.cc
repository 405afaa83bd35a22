// The program with the verb `run` alone: it is built without LibTorch, under every sanitizer.
#include "sluice/cli/verbs.h"

int main(int argc, char** argv) {
  CLI::App program("sluice run, alone", "sluice");
  program.option_defaults()->always_capture_default();
  return sluice::cli::parse_and_run(program, {sluice::cli::run_verb()}, argc, argv);
}
