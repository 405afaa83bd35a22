// The place where the processes of a run find each other. Internal to this room.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "sluice/base/result.h"
#include "sluice/replica/placement.h"
#include "sluice/replica/transport/sockets.h"

namespace sluice::replica {

// A meeting in the store of process 0: the store's address, and the meeting's name, which is the prefix of
// its keys.
struct Meeting {
  Endpoint store;
  std::string name;
};

// Advice for a coordinator's name without an address.
constexpr const char* kHowToName =
    "ssh and Slurm may know names that this machine does not: give the coordinator by an address that all "
    "hosts reach (sluice run --coordinator ADDRESS, SLUICE_COORDINATOR_ADDRESS), or add the name to "
    "/etc/hosts";

// Process 0 keeps a store (store_server.h) at the coordinator's address until its program ends, so that the
// same programs can meet there again, for example for several trainings in a row: each meeting has its own
// names in it. A process that was at one meeting waits for process 0's next. Errors: process 0 cannot listen
// there; no new meeting begins within `timeout`; the coordinator's name has no address for 45 s (kNotFound);
// or the listener there has another key for some seconds, as an earlier run that is about to end may
// (kPermissionDenied). Threads: any.
base::Result<Meeting> meet(const Placement& placement, const std::string& host, uint16_t port,
                           const std::string& key, std::chrono::seconds timeout);

}  // namespace sluice::replica
