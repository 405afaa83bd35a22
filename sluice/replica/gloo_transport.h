// Collectives between the processes of a run over LibTorch's Gloo.
#pragma once

#include <memory>

#include "sluice/base/result.h"
#include "sluice/collectives/transport.h"
#include "sluice/replica/processes.h"

namespace sluice::replica {

// Connects all processes with each other; all of them call it, as often as the others. A call of the
// transport fails after SLUICE_COLLECTIVE_TIMEOUT seconds (30 minutes), mostly a second or two after a
// process was killed, which Gloo now and then overlooks (seen once in thirty times on a busy machine), and in
// any case when the processes' pulses (pulse.h) say that one is lost. The network is the one through which
// the coordinator is reached; GLOO_SOCKET_IFNAME names another interface.
//
// f16 and bf16 are rounded after each process's addend; sums of 8- and 16-bit integers and all maxima and
// minima gather the processes' parts first, which costs more memory traffic on many processes.
base::Result<std::shared_ptr<collectives::Transport>> make_gloo_transport(
    const std::shared_ptr<Processes>& processes);

}  // namespace sluice::replica
