// Runs scripts with sh, for tests.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <string>

#include "sluice/pod/ssh/child.h"

namespace sluice::pod {

// Returns the standard output of a command with this standard input; followed by "(failed)" unless it ended
// with status 0.
inline std::string output_of(const std::vector<std::string>& command, const std::string& input = "") {
  base::Process child = base::value_or_throw(start_child(command));
  size_t sent = 0;
  std::string output;
  while (child.out() >= 0) {
    if (sent == input.size()) child.close_in();
    pollfd polled[] = {{child.out(), POLLIN, 0}, {child.in(), POLLOUT, 0}};
    ::poll(polled, child.in() >= 0 ? 2 : 1, -1);
    if (child.in() >= 0 && polled[1].revents != 0) {
      const ssize_t count = ::write(child.in(), input.data() + sent, input.size() - sent);
      if (count > 0) sent += static_cast<size_t>(count);
    }
    char block[4096];
    const ssize_t count = ::read(child.out(), block, sizeof block);
    if (count > 0) output.append(block, static_cast<size_t>(count));
    if (count == 0) child.close_out();
  }
  return child.wait().code() == 0 ? output : output + "(failed)";
}

inline std::string sh_output(const std::string& script) { return output_of({"sh", "-c", script}); }

}  // namespace sluice::pod
