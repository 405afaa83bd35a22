// The timer that holds a slice's limits without any client (guard.sh): on worker 0, with the machine's own
// service account.
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
  int speed = 1;         // for tests: how fast its clock runs
  // What stands in for all of Google's services, SLUICE_GOOGLE_ENDPOINT, and for the metadata server,
  // GCE_METADATA_HOST (host or host:port); empty: Google's.
  std::string endpoint, metadata_host;
};

// For a shell that evaluates its input (pod/ssh.h): mode start or stop.
std::string guard_script(const GuardSettings& settings, const std::string& mode);
// For the node's metadata entry startup-script: every start of the machine starts the timer again.
std::string guard_startup_script(const GuardSettings& settings);

// Whether a startup script has the timer in it; whether that one looks at the metadata entry kDeadlineKey, as
// all do but those of the first version; and that entry, with which its end moves, in seconds since 1970 (0:
// none).
bool has_guard(const std::string& startup_script);
bool guard_follows_metadata(const std::string& startup_script);
inline constexpr const char* kDeadlineKey = "sluice-deadline";

// What the script said (its standard error), as one warning for people; empty where all is well. An error
// when the timer does not run.
base::Result<std::string> read_guard_answer(const std::string& messages);

}  // namespace sluice::provision
