// Where the processes of a run find each other. Internal to this room.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "sluice/base/result.h"
#include "sluice/replica/placement.h"
#include "sluice/replica/sockets.h"

namespace sluice::replica {

// A meeting in the store of process 0: where that is, and the meeting's name, which stands before its keys.
struct Meeting {
  Endpoint store;
  std::string name;
};

// Process 0 keeps a store (store_server.h) at the coordinator's address until its program ends, so that the
// same programs can meet there again, as for one training behind the other: each meeting has its own names in
// it. A process that was at one waits for process 0's next. Errors: process 0 cannot listen there, no new
// meeting begins within `timeout`, or (kPermissionDenied) whoever listens there has another key for some
// seconds, as a run before this one may that is about to end. Threads: any.
base::Result<Meeting> meet(const Placement& placement, const std::string& host, uint16_t port,
                           const std::string& key, std::chrono::seconds timeout);

}  // namespace sluice::replica
