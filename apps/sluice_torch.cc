// All verbs, with LibTorch. `sluice` starts it for what it does not do itself.
#include <cstdlib>

#include "sluice/cli/cli.h"

int main(int argc, char** argv) {
  setenv("TF_CPP_MIN_LOG_LEVEL", "1",
         /*overwrite=*/0);  // XLA's plugins announce themselves on stderr otherwise
  return sluice::cli::run_command_line(argc, argv);
}
