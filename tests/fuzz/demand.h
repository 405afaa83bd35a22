// What a fuzz target calls when a promise is broken.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace sluice::fuzz {

inline void demand(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", promise);
  std::abort();
}

}  // namespace sluice::fuzz
