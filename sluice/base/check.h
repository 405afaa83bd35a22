// SLUICE_CHECK(condition, pieces…): aborts with the file and line when an invariant of our own is broken.
#pragma once

#include "sluice/base/text/join.h"

namespace sluice::base {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);
}

#define SLUICE_CHECK(condition, ...)                                                                  \
  do {                                                                                                \
    if (!(condition)) [[unlikely]]                                                                    \
      ::sluice::base::check_failed(__FILE__, __LINE__, #condition, ::sluice::base::str(__VA_ARGS__)); \
  } while (false)
