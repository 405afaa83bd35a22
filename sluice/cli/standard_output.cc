#include "sluice/cli/standard_output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace sluice::cli {
namespace {

bool is_closed_pipe() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

// Returns the error of the last write, or 0. Some file systems report a full disk only when a file is closed;
// closing a second descriptor of the file is enough for that.
int last_error() {
  errno = 0;
  if (std::fflush(stdout) != 0) return errno;
  const int copy = ::dup(STDOUT_FILENO);
  return copy >= 0 && ::close(copy) != 0 ? errno : 0;
}

}  // namespace

int checked_output(int status) {
  std::cout.flush();
  const bool lost_before = std::ferror(stdout) != 0;
  const int error = last_error();
  if (!lost_before && error == 0) return status;
  if (error == EPIPE || is_closed_pipe()) return status;
  const char* const reason = error == 0 ? "an earlier write failed" : std::strerror(error);
  std::fprintf(stderr,
               "sluice: cannot write standard output: %s. What was written is not complete: if the disk is "
               "full, free some space there, or write to another disk.\n",
               reason);
  return status == 0 ? 1 : status;
}

}  // namespace sluice::cli
