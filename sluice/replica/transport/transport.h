// The transport between the processes of a run for collectives on the host.
#pragma once

#include <chrono>
#include <memory>

#include "sluice/base/result.h"
#include "sluice/collectives/transport.h"
#include "sluice/replica/processes.h"

namespace sluice::replica {

// Connects all processes with each other; all of them call it, the same number of times. Uses shared memory
// if all run on one machine, else sockets; SLUICE_TRANSPORT=shared or sockets demands one of them.
base::Result<std::shared_ptr<collectives::Transport>> make_transport(
    const std::shared_ptr<Processes>& processes);

// Returns SLUICE_COLLECTIVE_TIMEOUT in seconds, or 30 minutes: how long a collective waits for a process that
// lives.
std::chrono::milliseconds collective_timeout();

}  // namespace sluice::replica
