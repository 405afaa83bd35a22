// What makes the device of this process one of many.
#pragma once

#include <memory>

#include "sluice/device/device.h"
#include "sluice/replica/processes.h"

namespace sluice::replica {

// Before init(): where collectives are calls of the host's handlers (XLA's CPU plugin) they get their
// transport to the other processes, and each launch is compared with the others'. Throws sluice::Error.
void connect_device(const std::shared_ptr<Processes>& processes, const DeviceOptions& options);

}  // namespace sluice::replica
