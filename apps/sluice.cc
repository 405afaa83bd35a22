// The program: every verb lives in the cli room.
#include "sluice/cli/cli.h"

int main(int argc, char** argv) { return sluice::cli::run(argc, argv); }
