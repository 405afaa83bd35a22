// The scripts that are sent to a worker's host.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/pod/environment.h"
#include "sluice/pod/job.h"

namespace sluice::pod {

// Returns a script that exports the variables, changes to the folder (empty: home; relative: below home) and
// becomes the command. `program`: the SHA-256 of a program whose bin/ comes first in PATH.
std::string worker_script(const Variables& variables, const std::string& folder,
                          const std::vector<std::string>& command, const std::string& program = "");

// The supervisor's settings (supervisor.sh explains them).
struct SupervisorSettings {
  std::string mode = "start";  // or attach
  std::string run, attempt;
  int worker = 0;
  int lease = 0, patience = 0, grace = 7;  // seconds
  uint64_t offset = 0;                     // bytes of the log that are already here
  uint64_t space = 0;                      // bytes that the log may take on the host; 0: no limit
  int port = 0;        // the port where the workers will meet on this host; 0: not on this host
  bool clock = false;  // the supervisor reports its host's time
  std::string script;  // the worker's script
};

// Returns supervisor.sh with its settings.
std::string supervisor_script(const SupervisorSettings& settings);

}  // namespace sluice::pod
