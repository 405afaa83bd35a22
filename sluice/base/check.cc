#include "sluice/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace sluice::base {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  // Plain stdio: the broken invariant may be the logger's own.
  std::fprintf(stderr, "%s:%d: broken invariant: %s%s%s\n", file, line, condition,
               message.empty() ? "" : ": ", message.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace sluice::base
