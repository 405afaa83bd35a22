// What makes the device of this process one of many.
#pragma once

#include <memory>

#include "sluice/replica/processes.h"

namespace sluice::replica {

// Before init(): the device will agree with those of the other processes, plugins find each other through the
// processes' store, collectives that are calls of the host's handlers (XLA's CPU plugin) get their transport,
// and each launch is compared with the others'. Null: this process is alone again.
void connect_device(const std::shared_ptr<Processes>& processes);

}  // namespace sluice::replica
