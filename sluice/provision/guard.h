// The timer that enforces a slice's limits without a client (guard.sh): it runs on worker 0 with the
// machine's own service account.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/base/result.h"

namespace sluice::provision {

struct GuardSettings {
  std::string node;      // projects/P/locations/Z/nodes/N
  std::string queued;    // projects/P/locations/Z/queuedResources/Q, or empty
  int64_t deadline = 0;  // seconds since 1970; 0: none
  int64_t idle = 0;      // seconds; 0: none
  int speed = 1;         // for tests: factor by which its clock runs faster
  // The servers that replace all of Google's services (SLUICE_GOOGLE_ENDPOINT) and the metadata server
  // (GCE_METADATA_HOST, host or host:port); empty: Google's.
  std::string endpoint, metadata_host;
};

// Returns the script for a shell that evaluates its input (pod/ssh/ssh.h); `mode`: start or stop.
std::string guard_script(const GuardSettings& settings, const std::string& mode);
// Returns the value of the node's metadata entry startup-script: every start of the machine restarts the
// timer.
std::string guard_startup_script(const GuardSettings& settings);

// Whether a startup script contains the timer.
bool has_guard(const std::string& startup_script);
// The metadata entry that the timer reads: the end in seconds since 1970 (0: none). Changing it moves the
// end.
inline constexpr const char* kDeadlineKey = "sluice-deadline";

// Converts the script's output (its standard error) into one warning for people; empty if all is well. An
// error if the timer does not run.
base::Result<std::string> read_guard_answer(const std::string& messages);

}  // namespace sluice::provision
