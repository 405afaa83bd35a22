// Collectives between the processes of a run over sockets.
#pragma once

#include <memory>

#include "sluice/base/result.h"
#include "sluice/collectives/transport.h"
#include "sluice/replica/processes.h"

namespace sluice::replica {

// Connects the processes in a ring; all of them call it, the same number of times. Each listens at one
// address until the one before it has connected and proved that it has the run's key (run_key.h); data on the
// connections is neither encrypted nor signed. A call of the transport fails after SLUICE_COLLECTIVE_TIMEOUT
// seconds (30 minutes), a second or two after a process was killed, and always when the processes' pulses
// (pulse.h) report that one is lost. The network is the one through which the coordinator is reached;
// GLOO_SOCKET_IFNAME names another interface, as it does for other programs.
//
// f16 and bf16 are rounded after each process's addend.
base::Result<std::shared_ptr<collectives::Transport>> make_socket_transport(
    const std::shared_ptr<Processes>& processes);

}  // namespace sluice::replica
