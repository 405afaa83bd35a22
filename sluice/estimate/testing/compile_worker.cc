// A program that contains only the worker of compile_in_worker().
#include <cstdio>

#include "sluice/estimate/ahead_worker.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s REQUEST REPORT\n", argv[0]);
    return 2;
  }
  return sluice::estimate::run_ahead_worker(argv[1], argv[2]);
}
