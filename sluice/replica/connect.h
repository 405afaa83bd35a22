// Connects the device of this process with the devices of the run's other processes.
#pragma once

#include <memory>

#include "sluice/replica/processes.h"

namespace sluice::replica {

// Call before init(). The device then agrees with those of the other processes, plugins find each other
// through the processes' store, collectives that are calls of the host's handlers (XLA's CPU plugin) get
// their transport, and each launch is compared with the others'. Null: this process is a single one again.
void connect_device(const std::shared_ptr<Processes>& processes);

}  // namespace sluice::replica
