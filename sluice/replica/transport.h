// How the processes of a run reach each other for collectives on the host.
#pragma once

#include <chrono>
#include <memory>

#include "sluice/base/result.h"
#include "sluice/collectives/transport.h"
#include "sluice/replica/processes.h"

namespace sluice::replica {

// Connects all processes with each other; all of them call it, as often as the others. Through shared memory
// where all run on one machine, else over sockets; SLUICE_TRANSPORT=shared or sockets demands one of them.
base::Result<std::shared_ptr<collectives::Transport>> make_transport(
    const std::shared_ptr<Processes>& processes);

// SLUICE_COLLECTIVE_TIMEOUT in seconds, or 30 minutes: so long a collective waits for a process that lives.
std::chrono::milliseconds collective_timeout();

}  // namespace sluice::replica
