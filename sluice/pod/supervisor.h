// The scripts that go to a worker's host.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/pod/environment.h"
#include "sluice/pod/job.h"

namespace sluice::pod {

// Exports the variables, goes to the folder (empty: home; relative: below home) and becomes the command. With
// a program (its SHA-256), that one's bin/ comes first in PATH.
std::string worker_script(const Variables& variables, const std::string& folder,
                          const std::vector<std::string>& command, const std::string& program = "");

// What the supervisor is told (supervisor.sh explains it).
struct SupervisorSettings {
  std::string mode = "start";  // or attach
  std::string run, attempt;
  int worker = 0;
  int lease = 0, patience = 0, grace = 7;  // seconds
  uint64_t offset = 0;                     // bytes of the log that are here already
  int port = 0;                            // where the workers will meet on this host; 0: not there
  bool clock = false;                      // it is to say its host's time
  std::string script;                      // the worker's
};

// supervisor.sh with its settings.
std::string supervisor_script(const SupervisorSettings& settings);

}  // namespace sluice::pod
