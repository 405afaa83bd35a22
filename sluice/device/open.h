// How the process's device is opened: the plugin, its client, the replicas of all processes.
#pragma once

#include <memory>

#include "sluice/device/runtime.h"

namespace sluice::device {

// Throws sluice::Error. With several processes all of them call it, and all throw when one of them cannot go
// on.
std::unique_ptr<Runtime> open(const Settings& settings);

}  // namespace sluice::device
