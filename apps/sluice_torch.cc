// All verbs, with LibTorch. `sluice` starts this program for the verbs that it does not run itself.
#include <cstdlib>

#include "sluice/cli/cli.h"

int main(int argc, char** argv) {
  setenv("TF_CPP_MIN_LOG_LEVEL", "1",
         /*overwrite=*/0);  // otherwise XLA's plugins print a banner to stderr
  return sluice::cli::run_command_line(argc, argv);
}
