// The commands that this room starts: ssh, tar and sh.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/process.h"

namespace sluice::pod {

// Starts a command in a session of its own, so that a terminal's Ctrl-C does not reach it, with a nonblocking
// pipe to each standard stream.
inline base::Result<base::Process> start_child(const std::vector<std::string>& command) {
  base::ProcessOptions options;
  options.input = base::ProcessOptions::Input::kPipe;
  options.output = options.error = base::ProcessOptions::Output::kPipe;
  options.nonblocking = options.own_session = true;
  return base::Process::start(command, options);
}

}  // namespace sluice::pod
