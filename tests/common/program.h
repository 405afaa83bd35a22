// The main function that programs of the tests share.
#pragma once

#include <cstdio>
#include <exception>

namespace sluice::tests {

// Returns what `run` returns. If it throws, writes "NAME: " and the message to standard error and returns 2.
inline int run_program(const char* name, int (*run)(int, char**), int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 2;
  }
}

}  // namespace sluice::tests
